import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect } from 'vitest'
import type { ManifestHead } from '../../../../src/features/bundles/format/manifest.ts'
import { importCommand } from '../../../../src/features/bundles/cli/import.ts'
import { SOURCES } from '../../../../src/base/domain/sources.ts'
import { type Bench, createBench } from '../../../support/mirror.ts'
import { type Below, below, carry, signer } from '../air-gap.ts'
import { type Forgery, forge } from '../forged.ts'
import { bothTest, longTest, telling, test } from '../../../support/tables.ts'

const ending: (() => unknown)[] = []
afterAll(async () => {
  for (const end of ending.reverse()) await end()
})

async function above(): Promise<Bench> {
  const bench = await createBench({ sandbox: { records: 12 } })
  ending.push(() => bench.close())
  for (const source of ['feeds', 'osv'] as const) await bench.run(source)
  return bench
}

async function change(bench: Bench): Promise<void> {
  bench.sandbox.feed.change(2)
  bench.sandbox.feed.remove(1)
  bench.sandbox.feed.add(1)
  await bench.run('osv')
}

/** All that a refusal must leave as it was. */
function stateOf({ store, ...there }: Below): object {
  return {
    digest: there.digest(),
    snapshots: SOURCES.map((source) => store.snapshots.readSnapshot(source)),
    archive: store.osv.readArchive(),
    parts: store.osv.listParts(),
    imports: store.ledger.listImports(100),
    logged: store.changes.lastLogged(),
  }
}

/** Three states above the gap, and what leads from one to the next. */
async function makeHistory() {
  const bench = await above()
  const to = mkdtempSync(join(tmpdir(), 'patchmirror-media-'))
  ending.push(() => rmSync(to, { recursive: true, force: true }))
  const first = await carry(bench.dir, to)
  await change(bench)
  const second = await carry(bench.dir, to, { since: '1' })
  await change(bench)
  const third = await carry(bench.dir, to, { since: '2' })
  const full = await carry(bench.dir, to)
  return { bench, to, first, second, third, full }
}

let made: ReturnType<typeof makeHistory> | null = null
const history = (): ReturnType<typeof makeHistory> => (made ??= makeHistory())

describe('a bundle that does not match the stored data', () => {
  longTest('is refused when its base is missing, and the base is named', async () => {
    const { first, second, third } = await history()
    const there = below()
    expect(await there.refuses(third.files)).toMatch(/since bundle 2, which is missing.*none was/)
    await there.take(first.files)
    const before = stateOf(there)
    const why = await there.refuses(third.files)
    expect(why).toMatch(/since bundle 2, which is missing here \(the last imported has 1;/)
    expect(why).toContain('"patchmirror bundle need FILE" here')
    expect(why).not.toContain('\n')
    expect(stateOf(there)).toEqual(before)
    for (const next of [second, third]) {
      await there.take(next.files)
      expect(there.digest()).toBe(next.manifest.digest)
    }
  })

  longTest('is refused when it is older, and applied and recorded with --allow-rollback', async () => {
    const { first, third, full } = await history()
    const there = below()
    await there.take(full.files)
    const before = stateOf(there)
    expect(full.manifest.sequence).toBe(third.manifest.sequence)
    expect(await there.refuses(first.files)).toMatch(/has sequence 1, and 3 was imported/)
    expect(stateOf(there)).toEqual(before)
    const report = await there.take(first.files, { allowRollback: true })
    expect(report).toMatchObject({ outcome: 'applied', rollback: true })
    expect(there.digest()).toBe(first.manifest.digest)
    expect(there.store.ledger.readLastImport()).toMatchObject({ sequence: 1, rollback: true })
    expect(there.store.runs.readConfirmedAt('osv')).toBe(Date.parse(first.manifest.sources.osv?.asOf ?? ''))
  })

  test('writes nothing when it was imported before', async () => {
    const { first } = await history()
    const there = below()
    await there.take(first.files)
    const before = stateOf(there)
    const runs = there.store.runs.listRuns(100)
    expect((await there.take(first.files)).outcome).toBe('same')
    expect(stateOf(there)).toEqual(before)
    expect(there.store.runs.listRuns(100)).toEqual(runs)
  })

  longTest('is refused when it has the sequence of another', async () => {
    const { to, first, full } = await history()
    const there = below()
    await there.take(full.files)
    const twin = await forge(first.files, to, {
      head: () => ({ sequence: full.manifest.sequence }),
    })
    expect(await there.refuses(twin)).toMatch(/went backwards.*same sequence 3 was imported/)
  })

  longTest('is refused when it is of another mirror and older, and imported when it is not older', async () => {
    const { to, full } = await history()
    const there = below()
    const other = await above()
    await there.take((await carry(other.dir, to)).files)
    const dated = (bundle: typeof full, asOf: string): Promise<string[]> =>
      forge(bundle.files, to, {
        head: ({ sources }) => {
          const given = Object.entries(sources).map(([name, one]) => [name, { ...one, asOf }])
          return { sources: Object.fromEntries(given) as ManifestHead['sources'] }
        },
      })
    expect(await there.refuses(await dated(full, '2020-01-01T00:00:00.000Z'))).toMatch(
      /is as of 2020-01-01T00:00:00.000Z, and here it is as of/,
    )
    const future = await dated(full, '2136-01-01T00:00:00.000Z')
    expect(await there.refuses(future)).toMatch(/is dated in the future: 2136-01-01/)
    const later = await dated(full, new Date(Date.now() + 3_600_000).toISOString())
    expect((await there.take(later)).outcome).toBe('applied')
    expect(there.digest()).toBe(full.manifest.digest)
  })
})

describe('a signed bundle whose content contradicts its manifest:', () => {
  const digest = 'ab'.repeat(32)
  const lies: [string, RegExp, Forgery][] = [
    [
      'promises another state',
      /not in the state that its manifest describes/,
      {
        head: ({ sources }) => {
          const given = Object.entries(sources).map(([name, one]) => [name, { ...one, digest }])
          return { sources: Object.fromEntries(given) as ManifestHead['sources'] }
        },
      },
    ],
    ['has another digest than its sources', /its digest is not that of its sources/, { head: () => ({ digest }) }],
    [
      'lacks a row',
      /archive that the bundle describes|state that its manifest describes/,
      { rows: (name, lines) => (name.includes('osv-record') ? lines.slice(1) : lines) },
    ],
    [
      'has a row too many',
      /does not contain the record ZZZ-1/,
      {
        rows: (name, lines) =>
          name.includes('osv-record') ? [...lines, (lines[0] ?? '').replace(/"key":"[^"]+"/, '"key":"ZZZ-1"')] : lines,
      },
    ],
    [
      'has rows out of order',
      /is out of order/,
      { rows: (name, lines) => (name.includes('osv-record') ? lines.toReversed() : lines) },
    ],
    [
      'has another date for a record',
      /not in the state that its manifest describes/,
      {
        rows: (name, lines) =>
          lines.map((line) => (name.includes('osv-record') ? line.replace(/"changed":\d+/, '"changed":5') : line)),
      },
    ],
    [
      'has another digest for a record',
      /does not have the bytes that its row names/,
      {
        rows: (name, lines) =>
          lines.map((line) => (name.includes('osv-record') ? line.replace(/"sha256":"..../, '"sha256":"0000') : line)),
      },
    ],
    [
      'says other things in its manifest than in its rows',
      /contradict each other about feeds/,
      {
        head: ({ sources }) => {
          const given = Object.entries(sources).map(([name, one]) => [name, { ...one, records: 1 }])
          return { sources: Object.fromEntries(given) as ManifestHead['sources'] }
        },
      },
    ],
    ['removes in a full bundle', /in a full bundle/, { rows: () => ['{"removed":"x"}'] }],
    ['has a line that is no JSON', /is not a JSON object/, { rows: () => ['{'] }],
    ['has a field too many', /cannot have: "more"/, { rows: () => ['{"more":1}'] }],
  ]
  const FEW = [
    ...['has another digest than its sources', 'lacks a row', 'has a field too many'],
    'says other things in its manifest than in its rows',
  ]
  bothTest.each(telling(lies, ...FEW))('one that %s changes nothing', async (_, why, forgery) => {
    const { to, first, full } = await history()
    const there = below()
    await there.take(first.files)
    const before = stateOf(there)
    expect(await there.refuses(await forge(full.files, to, forgery))).toMatch(why)
    expect(stateOf(there)).toEqual(before)
    expect(there.store.runs.readLatestRun('osv')?.state).toMatch(/complete|failed/)
    expect((await there.take(full.files)).outcome).toBe('applied')
  })

  longTest('a delta for another state makes no mixture', async () => {
    const { to, first, third } = await history()
    const there = below()
    await there.take(first.files)
    const before = stateOf(there)
    const held = there.store.carried.digestOf('osv')
    const forged = await forge(third.files, to, {
      head: ({ sources }) => {
        const { osv } = sources
        if (osv === undefined) return {}
        return { sources: { ...sources, osv: { ...osv, bases: [held] } } }
      },
    })
    expect(await there.refuses(forged)).toMatch(/nothing was changed. Import a full bundle/)
    expect(stateOf(there)).toEqual(before)
  })
})

test('an import only reads the medium', async () => {
  const { first } = await history()
  const [file = ''] = first.files
  const before = readFileSync(file)
  await below().take(first.files)
  expect(readFileSync(file).equals(before)).toBe(true)
})

longTest('several bundles of one command line are imported in the order of their sequence', async () => {
  const { first, second, third } = await history()
  const there = below()
  const { env } = process
  const write = process.stdout.write.bind(process.stdout)
  const tell = process.stderr.write.bind(process.stderr)
  const said: string[] = []
  const hear = (text: string | Uint8Array): boolean => said.push(String(text)) > 0
  const command = async (...media: (typeof first)[]): Promise<number> => {
    process.env = {
      PATCHMIRROR_DATA_DIR: there.dir,
      PATCHMIRROR_BUNDLE_TRUSTED_KEYS: signer().line,
    }
    process.stdout.write = process.stderr.write = hear
    try {
      return await importCommand(
        media.flatMap(({ files }) => files),
        {},
      )
    } finally {
      process.stdout.write = write
      process.stderr.write = tell
      process.env = env
    }
  }
  expect(await command(third)).toBe(1)
  expect(said.join('')).toMatch(/patchmirror: .* is refused: .*since bundle 2, which is missing/)
  expect(await command(third, first, second)).toBe(0)
  expect(there.digest()).toBe(third.manifest.digest)
})
