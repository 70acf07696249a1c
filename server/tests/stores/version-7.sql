-- A store of version 7, made with its tables. Sessions: a closed one with a name, a copy of it, and
-- one whose process has ended within a turn. The copy has lost its events before 6. Never changes.
PRAGMA application_id = 1094930515;
PRAGMA user_version = 7;
CREATE TABLE store (
    tokens INTEGER NOT NULL
) STRICT;
INSERT INTO store VALUES (3);
CREATE TABLE sessions (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    name TEXT UNIQUE,
    cwd TEXT NOT NULL,
    additional_directories TEXT NOT NULL,
    title TEXT,
    created_at TEXT NOT NULL,
    settings TEXT NOT NULL,
    forked_from TEXT,
    forked_at INTEGER,
    token INTEGER NOT NULL,
    owner TEXT
) STRICT;
CREATE TABLE activity (
    session INTEGER PRIMARY KEY,
    updated_at TEXT NOT NULL,
    running_turn INTEGER,
    oldest INTEGER NOT NULL
) STRICT;
CREATE INDEX activity_by_time ON activity (updated_at DESC);
CREATE TABLE batches (
    key INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    lines TEXT NOT NULL
) STRICT;
CREATE TABLE derived (
    session INTEGER PRIMARY KEY,
    text TEXT NOT NULL
) STRICT;
INSERT INTO derived VALUES (1, '[1,"ü"]');
CREATE TABLE prompts (
    session INTEGER NOT NULL,
    number INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (session, number)
) STRICT;
INSERT INTO prompts VALUES (3, 4, '{"blocks":[]}');
CREATE UNIQUE INDEX batches_by_last ON batches (session, last);
ALTER TABLE sessions ADD COLUMN data TEXT;
ALTER TABLE batches ADD COLUMN time INTEGER;
INSERT INTO sessions (key, id, name, cwd, additional_directories, title, created_at, settings, forked_from, forked_at, token, owner, data)
VALUES (1, 'sess_1', 'first', '/work', '["/more"]', 'It''s a title', '2026-11-22T10:00:00.000Z', '{"mode":{"value":"careful"}}', NULL, NULL, 1, NULL, '{"n":1.50}');
INSERT INTO sessions (key, id, name, cwd, additional_directories, title, created_at, settings, forked_from, forked_at, token, owner, data)
VALUES (2, 'sess_2', NULL, '/work', '["/more"]', 'It''s a title', '2026-11-22T10:00:03.000Z', '{"mode":{"value":"careful"}}', 'sess_1', 8, 2, NULL, '{"n":1.50}');
INSERT INTO sessions (key, id, name, cwd, additional_directories, title, created_at, settings, forked_from, forked_at, token, owner, data)
VALUES (3, 'sess_3', NULL, '/other', '[]', NULL, '2026-11-22T10:00:04.000Z', '{}', NULL, NULL, 3, '1-0123456789abcdef', NULL);
INSERT INTO activity VALUES (1, '2026-11-22T10:00:02.000Z', NULL, 1), (2, '2026-11-22T10:00:03.000Z', NULL, 6), (3, '2026-11-22T10:00:05.000Z', 1, 1);
INSERT INTO batches (key, session, first, last, lines, time)
VALUES (1, 1, 1, 4, '{"event":"turn_started","turn":1}
{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"permission"},"messageId":"message-1"}
{"sessionUpdate":"tool_call","toolCallId":"call-1-1","title":"Run a command","kind":"execute","status":"pending"}
{"event":"permission_asked","question":4,"request":{"sessionId":"sess_1","toolCall":{"toolCallId":"call-1-1","kind":"execute","title":"Run a command"},"options":[{"optionId":"allow","name":"Allow","kind":"allow_once"},{"optionId":"reject","name":"Reject","kind":"reject_once"}]}}
', 1795600801000);
INSERT INTO batches (key, session, first, last, lines, time)
VALUES (2, 1, 5, 5, '{"event":"permission_answered","question":4,"outcome":{"outcome":"selected","optionId":"allow"}}
', 1795600801500);
INSERT INTO batches (key, session, first, last, lines, time)
VALUES (3, 1, 6, 8, '{"sessionUpdate":"tool_call_update","toolCallId":"call-1-1","status":"completed"}
{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"It''s \"allowed\"\nü"},"messageId":"message-1-2"}
{"event":"turn_ended","turn":1,"stopReason":"end_turn"}
', 1795600802000);
INSERT INTO batches (key, session, first, last, lines, time)
VALUES (4, 2, 1, 8, '{"event":"turn_started","turn":1}
{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"permission"},"messageId":"message-1"}
{"sessionUpdate":"tool_call","toolCallId":"call-1-1","title":"Run a command","kind":"execute","status":"pending"}
{"event":"permission_asked","question":4,"request":{"sessionId":"sess_1","toolCall":{"toolCallId":"call-1-1","kind":"execute","title":"Run a command"},"options":[{"optionId":"allow","name":"Allow","kind":"allow_once"},{"optionId":"reject","name":"Reject","kind":"reject_once"}]}}
{"event":"permission_answered","question":4,"outcome":{"outcome":"selected","optionId":"allow"}}
{"sessionUpdate":"tool_call_update","toolCallId":"call-1-1","status":"completed"}
{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"It''s \"allowed\"\nü"},"messageId":"message-1-2"}
{"event":"turn_ended","turn":1,"stopReason":"end_turn"}
', 1795600802000);
INSERT INTO batches (key, session, first, last, lines, time)
VALUES (5, 3, 1, 2, '{"event":"turn_started","turn":1}
{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"slow"},"messageId":"message-1"}
', 1795600805000);
