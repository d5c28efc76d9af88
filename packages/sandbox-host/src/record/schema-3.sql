-- Written by the code of schema version 3: turns, forks with one environment, a paused session, a running process.
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE sessions (id TEXT PRIMARY KEY, token TEXT NOT NULL UNIQUE, row TEXT NOT NULL) STRICT;
INSERT INTO sessions VALUES('parent','tparent','{"id":"parent","tenant":"default","token":"tparent","phase":{"kind":"active"},"generation":1,"headGeneration":1,"base":{"name":"mini","digest":"00"},"createdAtMs":1,"labels":{"a":"b"},"env":{"TOKEN":"s3cret","LONG":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"},"limits":{"pids":4096,"memoryBytes":2147483648},"timing":{"ttlMs":null,"expiresAtMs":null,"idleTimeoutMs":null,"onTimeout":"destroy"},"ports":[],"networkPolicy":null,"exposures":[],"forkedFrom":null,"quotaBytes":null,"refquotaBytes":null,"container":"cparent","turnCounter":1,"parentSnapshot":"sn1"}');
INSERT INTO sessions VALUES('fork1','tfork1','{"id":"fork1","tenant":"default","token":"tfork1","phase":{"kind":"active"},"generation":1,"headGeneration":1,"base":{"name":"mini","digest":"00"},"createdAtMs":1,"labels":{"a":"b"},"env":{"TOKEN":"s3cret","LONG":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"},"limits":{"pids":4096,"memoryBytes":2147483648},"timing":{"ttlMs":null,"expiresAtMs":null,"idleTimeoutMs":null,"onTimeout":"destroy"},"ports":[],"networkPolicy":null,"exposures":[],"forkedFrom":{"sessionId":"parent","snapshotId":"sn1"},"quotaBytes":null,"refquotaBytes":null,"container":null,"turnCounter":1,"parentSnapshot":null}');
INSERT INTO sessions VALUES('fork2','tfork2','{"id":"fork2","tenant":"default","token":"tfork2","phase":{"kind":"active"},"generation":1,"headGeneration":1,"base":{"name":"mini","digest":"00"},"createdAtMs":1,"labels":{"a":"b"},"env":{"TOKEN":"s3cret","LONG":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"},"limits":{"pids":4096,"memoryBytes":2147483648},"timing":{"ttlMs":null,"expiresAtMs":null,"idleTimeoutMs":null,"onTimeout":"destroy"},"ports":[],"networkPolicy":null,"exposures":[],"forkedFrom":{"sessionId":"parent","snapshotId":"sn1"},"quotaBytes":null,"refquotaBytes":null,"container":null,"turnCounter":1,"parentSnapshot":null}');
INSERT INTO sessions VALUES('paused','tpaused','{"id":"paused","tenant":"default","token":"tpaused","phase":{"kind":"paused","sinceMs":20,"cause":"request"},"generation":1,"headGeneration":1,"base":{"name":"mini","digest":"00"},"createdAtMs":1,"labels":{"a":"b"},"env":{"OTHER":"1"},"limits":{"pids":4096,"memoryBytes":2147483648},"timing":{"ttlMs":null,"expiresAtMs":null,"idleTimeoutMs":null,"onTimeout":"destroy"},"ports":[],"networkPolicy":null,"exposures":[],"forkedFrom":null,"quotaBytes":null,"refquotaBytes":null,"container":"cpaused","turnCounter":0,"parentSnapshot":null}');
INSERT INTO sessions VALUES('plain','tplain','{"id":"plain","tenant":"default","token":"tplain","phase":{"kind":"active"},"generation":1,"headGeneration":1,"base":{"name":"mini","digest":"00"},"createdAtMs":1,"labels":{"a":"b"},"env":{},"limits":{"pids":4096,"memoryBytes":2147483648},"timing":{"ttlMs":null,"expiresAtMs":null,"idleTimeoutMs":null,"onTimeout":"destroy"},"ports":[],"networkPolicy":null,"exposures":[],"forkedFrom":null,"quotaBytes":null,"refquotaBytes":null,"container":"cplain","turnCounter":0,"parentSnapshot":null}');
CREATE TABLE snapshots (id TEXT PRIMARY KEY, token TEXT NOT NULL, name TEXT NOT NULL UNIQUE, row TEXT NOT NULL,
    head_generation INTEGER NOT NULL DEFAULT 0, sealed_tick INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO snapshots VALUES('sn1','tparent','s1','{"id":"sn1","token":"tparent","name":"s1","kind":"turn","turnNumber":1,"turnKey":"k1","outcome":"succeeded","title":null,"toolCallId":null,"createdAtMs":2,"parent":null,"generation":1}',1,2);
CREATE TABLE intents (token TEXT PRIMARY KEY, row TEXT NOT NULL) STRICT;
CREATE TABLE receipts (scope TEXT NOT NULL, key TEXT NOT NULL, payload_hash TEXT NOT NULL, result TEXT NOT NULL,
    at_ms INTEGER NOT NULL, PRIMARY KEY (scope, key)) STRICT;
INSERT INTO receipts VALUES('tparent/TurnComplete','k1','p','{"snapshotId":"sn1","turnNumber":1}',13);
INSERT INTO receipts VALUES('tparent/LaunchProcess','l1','q','"p1"',30);
INSERT INTO receipts VALUES('default/CreateSession','c1','z','{"id":"parent","token":"tparent"}',5);
CREATE TABLE calls (token TEXT NOT NULL, call_id TEXT NOT NULL, payload_hash TEXT NOT NULL, generation INTEGER NOT NULL,
    status TEXT NOT NULL, result TEXT, at_ms INTEGER NOT NULL, head_generation INTEGER NOT NULL DEFAULT 0,
    start_tick INTEGER NOT NULL DEFAULT 0, end_tick INTEGER, PRIMARY KEY (token, call_id)) STRICT;
INSERT INTO calls VALUES('tparent','small','h-small',1,'finished','{"content":"hello\n","isError":false,"exitCode":0,"exitReason":"exited","stdout":{"totalBytes":6,"truncatedBytes":0},"stderr":{"totalBytes":0,"truncatedBytes":0},"durationMs":3,"tier":2,"generation":1,"snapshotId":null}',10,1,0,0);
INSERT INTO calls VALUES('tparent','nuls','h-nuls',1,'finished','{"content":"\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000","isError":false,"exitCode":0,"exitReason":"exited","stdout":{"totalBytes":200,"truncatedBytes":0},"stderr":{"totalBytes":0,"truncatedBytes":0},"durationMs":3,"tier":2,"generation":1,"snapshotId":null}',11,1,0,0);
INSERT INTO calls VALUES('tparent','cut','h-cut',1,'started',NULL,12,1,0,NULL);
CREATE TABLE husks (token TEXT PRIMARY KEY, row TEXT NOT NULL) STRICT;
INSERT INTO husks VALUES('thusk','{"token":"thusk","sessionId":"husk","tenant":"default","sinceMs":40}');
CREATE TABLE idle (token TEXT PRIMARY KEY, idle_ms INTEGER NOT NULL) STRICT;
INSERT INTO idle VALUES('tparent',7);
CREATE TABLE sequence (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
INSERT INTO sequence VALUES('snapshot',2);
CREATE TABLE heads (token TEXT NOT NULL, generation INTEGER NOT NULL, origin_generation INTEGER,
    origin_begun_tick INTEGER, origin_sealed_tick INTEGER, origin_call_id TEXT, safe_tick INTEGER, lost_tick INTEGER,
    PRIMARY KEY (token, generation)) STRICT;
INSERT INTO heads VALUES('tparent',1,NULL,NULL,NULL,NULL,1,NULL);
CREATE TABLE lost_heads (token TEXT NOT NULL, generation INTEGER NOT NULL, PRIMARY KEY (token, generation)) STRICT;
INSERT INTO lost_heads VALUES('tpaused',1);
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
INSERT INTO facts VALUES('boot','b');
CREATE TABLE processes (token TEXT NOT NULL, process_id TEXT NOT NULL, row TEXT NOT NULL,
    PRIMARY KEY (token, process_id)) STRICT;
INSERT INTO processes VALUES('tparent','p1','{"token":"tparent","processId":"p1","generation":1,"headGeneration":1,"container":"cparent","binary":"/bin/sleep","args":["1d"],"terminal":null,"port":0,"address":"","ready":"yes","startedAtMs":30,"started":"yes","receipt":{"scope":"tparent/LaunchProcess","key":"l1"},"end":null}');
CREATE INDEX snapshots_by_token ON snapshots (token);
CREATE INDEX receipts_by_time ON receipts (at_ms);
CREATE INDEX calls_by_time ON calls (at_ms);
COMMIT;
PRAGMA user_version = 3;
