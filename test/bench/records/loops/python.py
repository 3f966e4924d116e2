"""The same in Python: zipfile reads, sqlite3 stores. python.py ARCHIVE DATABASE"""
import json
import sqlite3
import sys
import time
import zipfile

archive, database = sys.argv[1:]
started = time.perf_counter()
db = sqlite3.connect(database)
db.execute("PRAGMA journal_mode = WAL")
db.execute("PRAGMA synchronous = NORMAL")
db.execute("CREATE TABLE record (id TEXT PRIMARY KEY, modified TEXT, body BLOB)")
with zipfile.ZipFile(archive) as members:
    for info in members.infolist():
        content = members.read(info)
        record = json.loads(content)
        db.execute("INSERT INTO record VALUES (?, ?, ?)", (record["id"], record["modified"], content))
db.commit()
db.close()
with open("/proc/self/status") as status:
    peak = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
print(json.dumps({"ms": (time.perf_counter() - started) * 1000, "peak": peak}))
