"""What anybody would write for the databases of a scanner: each record into its ecosystems' zips, derived ones too."""
import json
import os
import sys
import time
import zipfile

archive, target = sys.argv[1:3]
started = time.process_time()
zips, stamps = {}, []
with zipfile.ZipFile(archive) as source:
    for name in source.namelist():
        text = source.read(name)
        record = json.loads(text)
        own, bases = set(), set()
        for affected in record.get("affected", []):
            package = affected.get("package", {})
            first, _, rest = package.get("ecosystem", "").partition(":")
            own.add(first)
            if rest:
                package["ecosystem"] = rest
                bases.add(rest.partition(":")[0])
        derived = json.dumps(record) if bases else None
        for folder in sorted(own | bases):
            if folder not in zips:
                os.makedirs(os.path.join(target, folder))
                path = os.path.join(target, folder, "all.zip")
                zips[folder] = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
            zips[folder].writestr(name, derived if folder in bases else text)
            stamps.append((record["modified"], f"{folder}/{name[:-5]}"))
for made in zips.values():
    made.close()
stamps.sort(reverse=True)
with open(os.path.join(target, "modified_id.csv"), "w") as out:
    out.writelines(f"{stamp},{name}\n" for stamp, name in stamps)
print(json.dumps({"ms": (time.process_time() - started) * 1000, "peak": 0}))
