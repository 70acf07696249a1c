"""What the database and the clients must agree on after each round of failures."""

import json

from nodes import psql

# Each batch with the token under which it was committed.
TRIGGER = """
CREATE TABLE audit (session bigint, last bigint, token bigint);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO audit SELECT NEW.session, NEW.last, token FROM acp_sessions WHERE key = NEW.session;
    RETURN NEW;
END $$;
CREATE TRIGGER audited AFTER INSERT ON acp_batches FOR EACH ROW EXECUTE FUNCTION note();
"""

ROWS = """
SELECT json_build_object('session', s.id, 'running', s.running_turn, 'last_event', s.last_event, 'batches',
    (SELECT json_agg(json_build_array(b.first, b.last, b.lines, a.token) ORDER BY b.last)
     FROM acp_batches b JOIN audit a ON a.session = b.session AND a.last = b.last WHERE b.session = s.key))
FROM acp_sessions s WHERE s.id IN (%s)
"""


class Log:
    """The log of a session, as the database has it."""

    def __init__(self, row):
        self.faults, self.texts, self.turns, self.keys = [], {}, {}, {}
        self.last = row["last_event"]
        expected, token, open_turn = 1, 0, None
        for first, last, lines, under in row["batches"] or []:
            lines = lines.splitlines()
            if first != expected or last - first + 1 != len(lines):
                self.faults.append(f"the batch {first} to {last} has {len(lines)} events, expected one from {expected}")
            if under < token:
                self.faults.append(f"event {first} was committed by lease {under}, after one of {token}")
            token = max(token, under)
            for number, line in enumerate(lines, first):
                open_turn = self.event(number, json.loads(line), open_turn)
            expected = last + 1
        if self.last != expected - 1:
            self.faults.append(f"the last event is {self.last}, expected {expected - 1}")
        if open_turn is not None or row["running"] is not None:
            self.faults.append(f"the turn {open_turn} has no end (running: {row['running']})")

    def event(self, number, event, open_turn):
        kind = event.get("event")
        if event.get("sessionUpdate") == "agent_message_chunk":
            self.texts[number] = event["content"]["text"]
        if kind == "turn_started":
            if open_turn is not None:
                self.faults.append(f"turn {number} begins in turn {open_turn}")
            key = event.get("prompt")
            if key in self.keys:
                self.faults.append(f"prompt {key} runs in the turns {self.keys[key]} and {number}")
            self.keys[key] = number
            return number
        if kind == "turn_ended":
            if event["turn"] != open_turn:
                self.faults.append(f"turn {event['turn']} ends in turn {open_turn}")
            self.turns[event["turn"]] = event.get("stopReason") or event.get("error")
            return None
        return open_turn


def audit(database, sessions, accepted):
    """Returns the logs, and what is wrong. `sessions`: their clients; `accepted`: keys of prompts that were answered."""
    ids = ", ".join(f"'{session}'" for session in sessions)
    rows = [json.loads(line) for line in psql(database, ROWS % ids)]
    logs = {row["session"]: Log(row) for row in rows}
    faults = []
    for session, clients in sessions.items():
        log = logs[session]
        faults += [f"{session}: {fault}" for fault in log.faults]
        faults += [f"{session}: prompt {key} has no turn" for key in accepted[session] if key not in log.keys]
        for client in clients:
            faults += [f"{session}, {type(client).__name__}: {fault}" for fault in client.faults]
            numbers = [number for number, _ in client.seen]
            missing = [number for number in log.texts if number not in set(numbers)]
            if numbers != sorted(set(numbers)) or missing or len(numbers) != len(log.texts):
                what = f"{len(numbers)} of {len(log.texts)} texts, missing {missing[:5]}"
                faults.append(f"{session}, {type(client).__name__}: {what}")
            wrong = [number for number, text in client.seen if text is not None and text != log.texts.get(number)]
            if wrong:
                faults.append(f"{session}: the texts {wrong[:5]} differ from the log")
    return logs, faults
