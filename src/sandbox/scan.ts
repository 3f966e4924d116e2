/** A member where it lies in a given archive. Offsets and sizes in bytes. */
export interface Scanned {
  name: string
  method: number
  crc32: number
  size: number
  /** The member's data as stored, compressed or not. */
  data: Buffer
  /** Where its two headers begin. */
  local: number
  central: number
}

/**
 * Lists an archive's members by its central directory, Zip64 included; for archives one trusts (the
 * sandbox's own or one given to it). Throws when there is no end record or an entry is damaged.
 */
export function scanZip(zip: Buffer): Scanned[] {
  const end = zip.lastIndexOf('PK\x05\x06', undefined, 'latin1')
  if (end < 0) throw new Error('not a zip archive: no end record')
  let count = zip.readUInt16LE(end + 10)
  let at = zip.readUInt32LE(end + 16)
  if (count === 0xffff || at === 0xffffffff) {
    const far = Number(zip.readBigUInt64LE(end - 12)) // the locator is the 20 bytes before
    count = Number(zip.readBigUInt64LE(far + 32))
    at = Number(zip.readBigUInt64LE(far + 48))
  }
  const members: Scanned[] = []
  for (let i = 0; i < count; i++) {
    const member = scanEntry(zip, at)
    members.push(member)
    at += 46 + zip.readUInt16LE(at + 28) + zip.readUInt16LE(at + 30) + zip.readUInt16LE(at + 32)
  }
  return members
}

function scanEntry(zip: Buffer, central: number): Scanned {
  if (zip.readUInt32LE(central) !== 0x02014b50) throw new Error('damaged central directory')
  const nameEnd = central + 46 + zip.readUInt16LE(central + 28)
  const compressed = zip.readUInt32LE(central + 20)
  let local = zip.readUInt32LE(central + 42)
  // Sizes fit 32 bits in any feed, so an offset is all that a Zip64 extra field can hold here.
  if (local === 0xffffffff) local = Number(zip.readBigUInt64LE(nameEnd + 4))
  const start = local + 30 + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28)
  return {
    name: zip.toString('utf8', central + 46, nameEnd),
    method: zip.readUInt16LE(central + 10),
    crc32: zip.readUInt32LE(central + 16),
    size: zip.readUInt32LE(central + 24),
    data: zip.subarray(start, start + compressed),
    local,
    central,
  }
}
