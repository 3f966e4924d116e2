"""Reads a thin bundle by docs/bundle-format.md alone. Arguments: the thin bundle, the base's whole bundle, the base's index.

Prints JSON: the manifest, the SHA-256 of each member's content, and the records.
"""
import hashlib
import io
import json
import struct
import sys
import zipfile
import zlib

import zstandard

WINDOW = 128 * 2**20
PACK = 4 * 2**20


def frames(data):
    assert data[:8] == b"PMTHIN1\n"
    at = 8
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at)
        at += 4
        yield data[at : at + length]
        at += length
    assert at == len(data)


def expand(frame, dictionary=b""):
    raw = zstandard.ZstdCompressionDict(dictionary, dict_type=zstandard.DICT_TYPE_RAWCONTENT) if dictionary else None
    return zstandard.ZstdDecompressor(dict_data=raw, max_window_size=WINDOW).decompressobj().decompress(frame)


def quoted(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def row(name, content):
    return quoted(
        {
            "key": name,
            "modified": json.loads(content).get("modified", ""),
            "crc32": zlib.crc32(content),
            "size": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
        }
    ).encode()


def read_records(stream, base):
    found = []
    last = False
    while not last:
        group = json.loads(expand(next(stream)))
        known = [base.read(entry["id"] + ".json") for entry in group["entries"] if entry["known"]]
        content = expand(next(stream), b"".join(known))
        at = 0
        for entry in group["entries"]:
            piece = content[at : at + entry["size"]]
            at += entry["size"]
            found.append((entry["id"], zlib.decompress(piece, -15) if entry["carried"] else piece))
        assert at == len(content)
        last = group["isLast"]
    return found


def predicted(rows, start):
    size = 0
    taken = []
    for line in rows[start:]:
        if size >= PACK:
            break
        taken.append(line)
        size += len(line)
    return b"\n".join(taken)


def main(thin, whole, index):
    stream = frames(open(thin, "rb").read())
    head = json.loads(expand(next(stream)))
    manifest = json.loads(head["manifest"])
    with zipfile.ZipFile(whole) as bundle:
        base = zipfile.ZipFile(io.BytesIO(bundle.read("osv/all.zip")))
    members = list(zip(manifest["members"], head["recipes"]))
    records = read_records(stream, base) if any(recipe["kind"] == "records" for _, recipe in members) else []
    rows = [row(*record) for record in records]
    ids = b"\n".join(quoted([name]).encode() for name, _ in records)
    digests = {}
    at = 0
    for member, recipe in members:
        name, kind = member["name"], recipe["kind"]
        if kind == "records":
            continue
        if kind == "stored":
            raise SystemExit("no member of this test is stored")
        of_records = name.startswith("rows/osv/osv-record-")
        if kind == "rows":
            dictionary = predicted(rows, at) if of_records else b""
        else:
            dictionary = open(index, "rb").read() if recipe["path"] else ids
        content = expand(next(stream), dictionary)
        digests[name] = hashlib.sha256(content).hexdigest()
        if of_records:
            at += sum(line.startswith(b'{"key":') for line in content.split(b"\n"))
    assert next(stream, None) is None
    print(json.dumps({"manifest": manifest, "digests": digests, "records": {n: c.decode() for n, c in records}}))


main(*sys.argv[1:])
