create table session (id text primary key, parent_id text, time_created integer, time_updated integer);
insert into session values ('ses_e00764755ffeemP1EiawzYIIu1', null, 1795288578219, 1795288578768);
create table message (id text primary key, session_id text, time_created integer, time_updated integer, data text);
insert into message values ('msg_1ff89ba69001Qw5KlY9dGSG2WU', 'ses_e00764755ffeemP1EiawzYIIu1', 1795288578665, 1795288578736, '{"role": "user", "time": {"created": 1795288578665}}');
insert into message values ('msg_1ff89bc70001mpZ6bxJ9qtyys1', 'ses_e00764755ffeemP1EiawzYIIu1', 1795288579185, 1795288579186, '{"role": "assistant","modelID":"fake-model", "cost": 0, "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}, "time": {"created": 1795288579185}}');
create table part (id text primary key, message_id text, session_id text, time_created integer, time_updated integer, data text);
insert into part values ('prt_1ff89ba9c001cg6VZLucfW2Km7', 'msg_1ff89ba69001Qw5KlY9dGSG2WU', 'ses_e00764755ffeemP1EiawzYIIu1', 1795288578748, 1795288578752, '{"type": "text", "text": "Key mw-1\n#do: write /home/dev/work/widgets/note.txt hello\n#do: bash touch /home/dev/outside.txt && sleep 5\n#do: ask Which colour?\n#do: say All finished."}');
