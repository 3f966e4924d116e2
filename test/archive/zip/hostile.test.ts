import { describe, expect } from 'vitest'
import { type HostileKind, HOSTILE_KINDS, hostileZip } from '../../sandbox/faults/hostile-zip.ts'
import { soundMember } from '../../sandbox/faults/raw-zip.ts'
import { bothTest, LONG, test } from '../../support/tables.ts'
import { type Outcome, archiveRefusal, openBytes, readAll } from './archives.ts'

/** The archive is refused as a whole, for this reason. */
interface WholeRefused {
  archive: string
}

/** The hostile members' fates in file order: the reason of a refusal, or null for content taken. */
interface Members {
  members: (string | null)[]
}

const UNSAFE = 'its name is not a safe relative path'
const taken = (count: number): Members => ({ members: Array.from({ length: count }, () => null) })
const refused = (...members: string[]): Members => ({ members })

/** What has to become of every kind there is; `satisfies` makes a new kind without an expectation an error. */
const FATES = {
  encrypted: refused('it is encrypted'),
  strongEncryption: refused('it is encrypted'),
  traversal: refused(UNSAFE, UNSAFE),
  absolute: refused(UNSAFE),
  backslash: refused(UNSAFE, UNSAFE),
  nulName: refused(UNSAFE),
  emptyName: refused(UNSAFE),
  longName: taken(1),
  nonUtf8Name: refused(UNSAFE),
  // What the content means is the sync's business, not the archive's.
  duplicates: taken(2),
  notJson: taken(1),
  notObject: taken(1),
  idMismatch: taken(1),
  foreignMember: taken(1),
  symlink: taken(1), // a member is read, never created as a file, so a link is only its text
  bombSmall: refused('inflates to more than its 100 bytes'),
  bombTrue: refused('64000000 bytes are over the cap of 1000000'),
  bombHuge: refused('4294967294 bytes are over the cap of 1000000'),
  overlap: { archive: 'overlaps what follows it' },
  directories: taken(3),
  manyMembers: taken(70_000),
  stored: taken(1),
  dataDescriptor: taken(1),
  unknownMethod: refused('compression method 12'),
  prefix: taken(1),
  unshiftedPrefix: { archive: 'does not end where its end record begins' },
  comment: taken(1),
  commentWithEnd: taken(1),
  localName: refused('local header names another member'),
  localMethod: refused('local header names another method'),
  localSize: taken(1), // the central directory counts, and the content agrees with it
  wrongCrc: refused('CRC-32 differs'),
  brokenStream: refused('does not inflate'),
  offsetBeyond: { archive: 'overlaps what follows it' },
  sizeBeyond: { archive: 'overlaps what follows it' },
  countMismatch: { archive: 'cannot contain 60000 entries' },
  empty: { archive: 'not a zip, or cut short' },
  truncated: { archive: 'not a zip, or cut short' },
  notZip: { archive: 'not a zip, or cut short' },
  noMembers: { members: [] },
} satisfies Record<HostileKind, WholeRefused | Members>

const SOUND = soundMember('ROOT-SOUND-1.json', '{"id":"ROOT-SOUND-1"}')

/** Sound members come first: whatever is wrong with a later one, these are taken. */
async function outcomesOf(kind: HostileKind): Promise<Outcome[]> {
  const outcomes = await readAll(openBytes(hostileZip(kind, [SOUND])).reader)
  if (kind === 'noMembers') return outcomes
  const [sound, ...hostile] = outcomes
  expect(sound?.content?.toString()).toBe('{"id":"ROOT-SOUND-1"}')
  return hostile
}

describe('a hostile archive of the kind', () => {
  // Seventy thousand members take seconds; Zip64 itself is tested in `writer.test.ts`.
  const KINDS = HOSTILE_KINDS.filter((kind) => LONG || kind !== 'manyMembers')
  bothTest.each(KINDS)('%s is refused or read as its table row states', async (kind) => {
    const fate: WholeRefused | Members = FATES[kind]
    if ('archive' in fate) {
      expect(archiveRefusal(hostileZip(kind, [SOUND]))).toContain(fate.archive)
      return
    }
    const outcomes = await outcomesOf(kind)
    expect(outcomes.length).toBe(fate.members.length)
    const wrong = fate.members.flatMap((reason, i) => {
      const { content = null, refused = null } = outcomes[i] ?? {}
      const fits = reason === null ? content !== null : refused?.includes(reason) === true
      return fits ? [] : [{ member: i, expected: reason, refused }]
    })
    expect(wrong).toEqual([])
  })
})

describe('an accepted member', () => {
  test('has its original bytes, whatever is malformed around it', async () => {
    const [stored] = await outcomesOf('stored')
    expect(JSON.parse(String(stored?.content))).toMatchObject({ id: 'ROOT-HOSTILE-1' })
    const [described] = await outcomesOf('dataDescriptor')
    expect(JSON.parse(String(described?.content))).toMatchObject({ id: 'ROOT-HOSTILE-1' })
    const [first, second] = await outcomesOf('duplicates')
    expect([String(first?.content), String(second?.content)]).toEqual([
      expect.stringContaining('first'),
      expect.stringContaining('second'),
    ])
    const [link] = await outcomesOf('symlink')
    expect(link?.content?.toString()).toBe('/etc/passwd')
  })
})
