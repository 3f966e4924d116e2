import { randomBytes } from 'node:crypto'
import { readdirSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect } from 'vitest'
import { buildArchive } from '../../../../src/archive/build.ts'
import type { Progress } from '../../../../src/sync/context.ts'
import { type Bench, createBench } from '../../../support/mirror.ts'
import { type NamedContent, pack } from '../../../archive/zip/archives.ts'
import { longTest, test } from '../../../support/tables.ts'

const INDEX = '/external/osv/all.json'
const ARCHIVE = '/external/osv/all.zip'
const STAMP = '2026-01-02T03:04:05Z'
const benches: Bench[] = []

afterEach(async () => {
  for (const bench of benches.splice(0)) await bench.close()
})

/** Ids whose order is not that of their members' names: `A.json` is after `A-1.json`. */
const IDS = [...Array(20).keys()].flatMap((i) => [`A-${100 + i}`, `A-${100 + i}-1`])
/** More than 2 MiB when compressed, which is read in a thread of its own. */
const RECORDS = new Map(
  IDS.map((id) => {
    const details = randomBytes(54_000).toString('base64')
    return [id, JSON.stringify({ id, modified: STAMP, details })]
  }),
)

function members(ids: readonly string[]): NamedContent[] {
  return ids.map((id) => [`${id}.json`, RECORDS.get(id) ?? ''])
}

const ENTRIES = JSON.stringify(IDS.map((id) => ({ id, modified: STAMP })))

/** A mirror of an upstream with this archive. */
async function mirrored(
  archive: readonly NamedContent[],
  onProgress: (bench: Bench, progress: Progress) => void = () => undefined,
): Promise<Bench> {
  let bench: Bench | null = null
  const made = await createBench({
    sandbox: { records: 1 },
    onProgress: (progress) => {
      if (bench !== null) onProgress(bench, progress)
    },
  })
  bench = made
  benches.push(made)
  serve(made, INDEX, Buffer.from(ENTRIES), 'application/json')
  serve(made, ARCHIVE, pack(archive), 'application/zip')
  return made
}

function serve({ sandbox }: Bench, path: string, body: Buffer, type: string): void {
  sandbox.faults.set(path, { kind: 'body', body, type })
}

function archiveOf({ store }: Bench): string | undefined {
  return store.osv.readArchive()?.sha256
}

describe('an archive that is read in a thread of its own', () => {
  longTest('gives the same mirror in any order, and the derived archive that the store gives', async () => {
    const shuffled = IDS.toSorted((a, b) => a.slice(-2).localeCompare(b.slice(-2)))
    const digests: (string | undefined)[] = []
    for (const order of [IDS, shuffled]) {
      const bench = await mirrored(members(order))
      expect(await bench.run('osv')).toMatchObject({ state: 'complete' })
      for (const id of IDS) expect(bench.content(id)?.toString()).toBe(RECORDS.get(id))
      const rebuilt = await buildArchive(bench.store.osv, join(bench.dir, 'derived'), () => true)
      expect(archiveOf(bench)).toBe(rebuilt.sha256)
      expect(rebuilt.written).toEqual(bench.store.osv.listParts().map(({ dirty: _, ...part }) => part))
      digests.push(rebuilt.sha256)
    }
    expect(new Set(digests).size).toBe(1)
  })

  test('is stored without the members that are refused, and its derived archive too', async () => {
    const [first = '', second = '', third = '', ...others] = IDS
    const bench = await mirrored([
      ...members([...others, second, second]),
      [`${first}.json`, JSON.stringify({ id: 'another' })],
    ])
    const report = await bench.run('osv')
    expect(report).toMatchObject({ state: 'partial' })
    expect(report.facts['contradictions']).toEqual([
      `${second}: the archive contains it more than once`,
      `${third}: it is missing in the archive`,
      `${first}: its id is "another"`,
    ])
    expect(bench.store.osv.countRecords()).toBe(IDS.length - 3)
    const rebuilt = await buildArchive(bench.store.osv, join(bench.dir, 'derived'), () => true)
    expect(archiveOf(bench)).toBe(rebuilt.sha256)
  })

  longTest('fails the run when it cannot be read any more, and leaves what was published', async () => {
    let damages = true
    const bench = await mirrored(members(IDS), ({ dir }, { phase }) => {
      if (phase === 'ingest' && damages) truncateSync(join(dir, 'downloads', 'osv-all.zip'), 100_000)
    })
    expect(await bench.run('osv')).toMatchObject({ state: 'failed', code: 'archive' })
    expect(bench.store.osv.countRecords()).toBe(0)
    expect(archiveOf(bench)).toBeUndefined()
    damages = false
    expect(await bench.run('osv')).toMatchObject({ state: 'complete' })
    const published = archiveOf(bench)
    damages = true
    expect(await bench.run('osv', { full: true })).toMatchObject({ state: 'complete' }) // nothing differs, none is read
    const spoiled = IDS.map((id): NamedContent => [`${id}.json`, `${RECORDS.get(id) ?? ''} `])
    bench.sandbox.faults.clear()
    serve(bench, INDEX, Buffer.from(ENTRIES), 'application/json')
    serve(bench, ARCHIVE, pack(spoiled), 'application/zip')
    expect(await bench.run('osv', { full: true })).toMatchObject({
      state: 'failed',
      code: 'archive',
    })
    expect(archiveOf(bench)).toBe(published)
    const left = readdirSync(join(bench.dir, 'derived')).filter((name) => !name.endsWith('.zip'))
    expect(left).toEqual([])
    expect(bench.content(IDS[0] ?? '')?.toString()).toBe(RECORDS.get(IDS[0] ?? ''))
  })

  longTest('is not stored by a run that was stopped', async () => {
    const bench = await mirrored(members(IDS), (made, { phase }) => {
      if (phase === 'ingest') made.abort()
    })
    expect(await bench.run('osv')).toMatchObject({ state: 'stopped', code: 'aborted' })
    expect(bench.store.osv.countRecords()).toBe(0)
  })
})
