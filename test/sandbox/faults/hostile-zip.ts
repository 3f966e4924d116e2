import { crc32, deflateRawSync } from 'node:zlib'
import { type RawArchive, type RawMember, soundMember, writeRawZip } from './raw-zip.ts'

/** What an archive is made of: its members and what is around them. */
interface Made {
  members: RawMember[]
  archive?: RawArchive
}

const SCHEMA = { schema_version: '1.6.0', modified: '2026-05-01T00:00:00Z' }

/** A small sound record named for what is wrong around it. */
function record(id: string, more: object = {}): string {
  return JSON.stringify({ ...SCHEMA, id, ...more })
}

function bad(name: string, changes: Partial<RawMember> = {}, content?: string): RawMember {
  return { ...soundMember(name, content ?? record(name.replace(/\.json$/, ''))), ...changes }
}

const names = (...list: string[]): Made => ({ members: list.map((name) => bad(name)) })
const one = (changes: Partial<RawMember>): Made => ({
  members: [bad('ROOT-HOSTILE-1.json', changes)],
})
const around = (archive: RawArchive): Made => ({ members: [bad('ROOT-HOSTILE-1.json')], archive })

/** What both bombs inflate to, bytes. */
const BOMB_BYTES = 64_000_000
let spaces: Buffer | null = null

/** A member of 64 MB of spaces, which deflate to about a thousandth. */
function bomb(declared: number): RawMember {
  const data = (spaces ??= deflateRawSync(Buffer.alloc(BOMB_BYTES, 0x20), { level: 9 }))
  return bad('ROOT-HOSTILE-BOMB.json', { data, compressedSize: data.length, size: declared })
}

/** Archives that attack a reader, and unusual ones that a reader must still take (marked). */
const KINDS = {
  /** The encrypted flag on a member. */
  encrypted: () => one({ flags: 1 }),
  strongEncryption: () => one({ flags: 0x41 }),
  /** Names that leave the folder. */
  traversal: () => names('../../evil.json', 'a/../../evil.json'),
  absolute: () => names('/etc/evil.json'),
  backslash: () => names('..\\evil.json', 'C:\\evil.json'),
  nulName: () => names('ROOT-HOSTILE-1.json\0.exe'),
  emptyName: () => names(''),
  longName: () => names(`${'N'.repeat(60_000)}.json`),
  nonUtf8Name: () => ({
    members: [bad('x', { name: Buffer.from([0x52, 0xff, 0xfe, 0x2e, 0x6a, 0x73, 0x6f, 0x6e]) })],
  }),
  /** One name twice, contents differ. */
  duplicates: () => ({
    members: [
      bad('ROOT-HOSTILE-1.json', {}, record('ROOT-HOSTILE-1', { details: 'first' })),
      bad('ROOT-HOSTILE-1.json', {}, record('ROOT-HOSTILE-1', { details: 'second' })),
    ],
  }),
  notJson: () => ({ members: [bad('ROOT-HOSTILE-1.json', {}, '{"id": "ROOT-HOSTILE-1", ')] }),
  notObject: () => ({ members: [bad('ROOT-HOSTILE-1.json', {}, '["ROOT-HOSTILE-1"]')] }),
  idMismatch: () => ({ members: [bad('ROOT-HOSTILE-1.json', {}, record('ROOT-HOSTILE-2'))] }),
  /** Not a record's name. */
  foreignMember: () => ({ members: [bad('README.txt', {}, 'hello')] }),
  symlink: () => ({ members: [bad('ROOT-HOSTILE-1.json', { mode: 0o120777 }, '/etc/passwd')] }),
  /** Declares 100 bytes, inflates to 64 MB. */
  bombSmall: () => ({ members: [bomb(100)] }),
  /** Declares what it is: 64 MB from 64 KB. */
  bombTrue: () => ({ members: [bomb(BOMB_BYTES)] }),
  /** Declares 4 GB, contains little. */
  bombHuge: () => one({ size: 0xfffffffe }),
  /** A thousand entries that share one member's data. */
  overlap: () => ({
    members: [
      bad('ROOT-HOSTILE-0.json'),
      ...Array.from({ length: 1000 }, (_, i) => bad(`ROOT-HOSTILE-${i + 1}.json`, { sharesDataOf: -1 })),
    ],
  }),
  /** Sound (to be read): entries for folders, and records inside one. */
  directories: () => ({
    members: [bad('nested/', {}, ''), bad('nested/deeper/', {}, ''), bad('nested/deeper/R-1.json')],
  }),
  /** Sound (to be read): 70,000 members, which needs Zip64. */
  manyMembers: () => ({ members: Array.from({ length: 70_000 }, (_, i) => tiny(i)) }),
  /** Sound (to be read): method 0. */
  stored: () => ({ members: [storedMember()] }),
  /** Sound (to be read): sizes behind the data. */
  dataDescriptor: () => one({ descriptor: true }),
  /** bzip2. */
  unknownMethod: () => one({ method: 12 }),
  /** Garbage in front; the offsets know of it. */
  prefix: () => around({ prefix: Buffer.alloc(1000, '#') }),
  /** Garbage in front that the offsets do not know of. */
  unshiftedPrefix: () => around({ prefix: Buffer.alloc(1000, '#'), shifted: false }),
  /** Sound (to be read). */
  comment: () => around({ comment: Buffer.from('a comment') }),
  /** Sound, if hard: the comment looks like an end record. */
  commentWithEnd: () => around({ comment: Buffer.concat([Buffer.from('PK\x05\x06'), Buffer.alloc(30)]) }),
  localName: () => one({ localName: 'ROOT-HOSTILE-2.json' }),
  localMethod: () => one({ localMethod: 0 }),
  localSize: () => one({ localSize: 7 }),
  wrongCrc: () => one({ crc32: 0x12345678 }),
  /** The stream does not inflate. */
  brokenStream: () => one({ data: Buffer.alloc(80, 0xff), compressedSize: 80 }),
  /** An offset beyond the end of the file. */
  offsetBeyond: () => one({ offset: 0x7fffffff }),
  /** Compressed size runs into the central directory. */
  sizeBeyond: () => one({ compressedSize: 5_000_000 }),
  /** The end record claims more members than there are. */
  countMismatch: () => around({ count: 60_000 }),
} satisfies Record<string, () => Made>

/** A name for something wrong, or rare, in an archive. */
export type HostileKind = keyof typeof KINDS | 'empty' | 'truncated' | 'notZip' | 'noMembers'

/** All kinds, for tests that go through them. */
export const HOSTILE_KINDS: readonly HostileKind[] = [
  ...(Object.keys(KINDS) as (keyof typeof KINDS)[]),
  'empty',
  'truncated',
  'notZip',
  'noMembers',
]

/**
 * The archive of a kind. `base` are sound members that come before the hostile ones, so that a reader
 * can be seen to keep or drop the rest; by default one record `ROOT-SOUND-1`.
 */
export function hostileZip(kind: HostileKind, base: readonly RawMember[] = [sound()]): Buffer {
  if (kind === 'empty') return Buffer.alloc(0)
  if (kind === 'noMembers') return writeRawZip([])
  if (kind === 'notZip') return Buffer.from('<html>not a zip</html>'.repeat(100))
  if (kind === 'truncated') {
    const whole = writeRawZip([...base, bad('ROOT-HOSTILE-1.json')])
    return whole.subarray(0, Math.floor(whole.length / 2))
  }
  const made: Made = KINDS[kind]()
  const members = made.members.map((member) =>
    member.sharesDataOf === undefined ? member : { ...member, sharesDataOf: base.length },
  )
  return writeRawZip([...base, ...members], made.archive)
}

function sound(): RawMember {
  return soundMember('ROOT-SOUND-1.json', record('ROOT-SOUND-1'))
}

function tiny(i: number): RawMember {
  const id = `ROOT-TINY-${i}`
  return storedMember(id)
}

function storedMember(id = 'ROOT-HOSTILE-1'): RawMember {
  const data = Buffer.from(record(id))
  const sizes = { size: data.length, compressedSize: data.length }
  return { name: `${id}.json`, data, method: 0, crc32: crc32(data), ...sizes }
}
