create table session (id text primary key, parent_id text, time_created integer, time_updated integer);
insert into session values ('ses_dff45e173ffe11uLSSqanY3STq', null, 1795308527245, 1795308556555);
create table message (id text primary key, session_id text, time_created integer, time_updated integer, data text);
insert into message values ('msg_200ba2117001wWVkLQzsmU1lZE', 'ses_dff45e173ffe11uLSSqanY3STq', 1795308527896, 1795308556639, '{"role": "user", "time": {"created": 1795308527896}, "model": {"providerID": "scripted", "modelID": "scripted"}}');
insert into message values ('msg_200ba23fe001TNmMOu47r3e2M2', 'ses_dff45e173ffe11uLSSqanY3STq', 1795308528638, 1795308528641, '{"role": "assistant", "cost": 0, "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}, "modelID": "scripted", "time": {"created": 1795308528638}}');
create table part (id text primary key, message_id text, session_id text, time_created integer, time_updated integer, data text);
insert into part values ('prt_200ba213f001Fi72t0zslIcvFR', 'msg_200ba2117001wWVkLQzsmU1lZE', 'ses_dff45e173ffe11uLSSqanY3STq', 1795308528002, 1795308528012, '{"type": "text", "text": "[mw-1] go\n#do: error 429 99\n#do: say never"}');
