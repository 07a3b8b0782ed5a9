"""Any command as an agent: the prompt in a file, its state in lines that it prints.

`command` and `args` may contain `{prompt}` (path of the first prompt's file), `{workspace}`,
`{session}`, `{run}`, `{branch}` and `{resume}` (the session's id from its second run on; empty
before). The environment has the same values as MERGEWRIGHT_PROMPT_FILE, _WORKSPACE, _SESSION, _RUN,
_BRANCH and _RESUME, and

- MERGEWRIGHT_SYSTEM_PROMPT: the system prompt;
- MERGEWRIGHT_MODEL_URL and MERGEWRIGHT_MODEL_KEY: the model's endpoint and key;
- MERGEWRIGHT_SUMMARY_FILE: path of the file for the pull request's title and text;
- MERGEWRIGHT_PROGRESS_FILE: path of the file for notes on the progress, which a later run gets.

Later messages arrive as lines on its standard input.

A line of its output that begins with `mergewright: ` reports its state:

    active [TEXT]      it works
    ready [SUMMARY]    its turn is over
    waiting QUESTION   it waits for a person's answer
    blocked ERROR      it cannot continue by itself
    limited UNTIL WHY  a usage limit blocks it until then: 2026-11-21T15:00:00Z
    received KEY       it received the message with this key and works on it
    calling TEXT       it works, and runs something that may print nothing for a long time
    usage JSON         its usage in this run so far: {"input": 9, "output": 9, "cost_usd": 0.1};
                       with a "model" and without a cost, the configured prices apply

The last such line holds while the command runs; `usage` lines are independent of the others. A
command that prints none of them counts as active while it prints, and as ready after 30 seconds of
silence. Other output changes nothing: in particular, it does not end a question.
"""
