import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  type FindingsBench,
  affecting,
  componentsOf,
  openFindingsBench,
  readFindings,
} from '../findings/fixtures.ts'

/** Histories; a judgement from the beginning follows each of their judgements. */
const RUNS = 20
/** Records that a history puts, changes and removes. */
const RECORDS = 3

type Step =
  | { do: 'record'; which: number; of: number; fixed: number | null; severity: string; vendor: boolean } // prettier-ignore
  | { do: 'remove record'; which: number }
  | { do: 'rotate' | 'remove tag'; which: number }
  | { do: 'add tag' }
  | { do: 'crawl' }
  | { do: 'judge' }

const history: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({
        do: fc.constant('record' as const),
        which: fc.nat({ max: RECORDS - 1 }),
        of: fc.nat({ max: 1000 }),
        fixed: fc.option(fc.nat({ max: 10 })),
        severity: fc.constantFrom('CRITICAL', 'HIGH', 'LOW', ''),
        vendor: fc.boolean(),
      }),
    },
    { weight: 3, arbitrary: fc.record({ do: fc.constant('remove record' as const), which: fc.nat({ max: RECORDS - 1 }) }) }, // prettier-ignore
    { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('rotate' as const, 'remove tag' as const), which: fc.nat({ max: 9 }) }) }, // prettier-ignore
    { weight: 1, arbitrary: fc.record({ do: fc.constant('add tag' as const) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('crawl' as const) }) },
    { weight: 8, arbitrary: fc.record({ do: fc.constant('judge' as const) }) },
  ),
  { minLength: 8, maxLength: 25, size: 'max' },
)

/** Numbers of each tag by its id. */
function countsOf(
  dir: string,
): Map<string, { findings: number; fixable: number; judged: boolean }> {
  const tags = readFindings(dir, (reads) => reads.listTags('', '', 1000))
  return new Map(
    tags.map(({ owner, findings, fixable, refusal }) => [
      owner,
      { findings, fixable, judged: refusal === null },
    ]),
  )
}

async function play(steps: readonly Step[]): Promise<void> {
  const bench = await openFindingsBench({}, () => undefined)
  await follow(bench, steps).finally(() => bench.close())
}

async function follow(bench: FindingsBench, steps: readonly Step[]): Promise<void> {
  const { dir } = bench
  const { service } = bench.sandbox
  const records = new Set<string>()
  await bench.crawl()
  await bench.publish({})
  await bench.judge()
  let before = countsOf(dir)
  let position = 0
  const look = async (): Promise<void> => {
    await bench.judge()
    const logged = readFindings(dir, (reads) => reads.listLog(position, 10_000))
    position = logged.at(-1)?.seq ?? position
    const now = countsOf(dir)
    for (const [owner, tag] of now) {
      const was = before.get(owner)
      if (was === undefined || !was.judged || !tag.judged) continue
      const own = logged.filter((one) => one.owner === owner)
      const sum = (of: (one: (typeof own)[number]) => number): number =>
        own.reduce((total, one) => total + of(one), 0)
      expect(was.findings + sum(({ found, gone }) => found - gone)).toBe(tag.findings)
      expect(was.fixable + sum(({ fixes, fixesGone }) => fixes - fixesGone)).toBe(tag.fixable)
    }
    before = now
    const known = bench.known()
    expect(known).toEqual(await bench.fresh())
    expect(known.unused).toBe(0)
    const matched = await Promise.all(known.tags.map(({ owner }) => bench.matched(owner)))
    const found = known.rows.filter((row) => !row.endsWith(' -'))
    expect(found.map((row) => row.replace(/ \d$/, '')).sort()).toEqual(matched.flat().sort())
  }
  for (const step of steps) {
    if (step.do === 'record') {
      const all = componentsOf(dir)
      const one = all[step.of % all.length]
      if (one === undefined) continue
      const id = `T-${step.which}`
      records.add(id)
      const fixed = step.fixed === null ? null : `${step.fixed}.0`
      const ecosystem = step.vendor ? `Root:${one.ecosystem}` : one.ecosystem
      await bench.publish({ [id]: affecting(ecosystem, one.name, fixed, step.severity) })
    } else if (step.do === 'remove record' && records.delete(`T-${step.which}`))
      await bench.publish({ [`T-${step.which}`]: null })
    else if (step.do === 'add tag') service.addTag()
    else if (step.do === 'rotate' || step.do === 'remove tag') {
      const ids = service.ids('tags')
      const id = ids[step.which % ids.length]
      if (id === undefined || ids.length < 3) continue
      if (step.do === 'rotate') service.rotateArtifact('tag', id, 'sbom')
      else service.remove('tags', id)
    } else if (step.do === 'crawl') await bench.crawl()
    else if (step.do === 'judge') await look()
  }
  await look()
}

test('findings that follow changes are those of a judgement from the beginning, and the log adds up to them', async () => {
  await fc.assert(fc.asyncProperty(history, play), { numRuns: RUNS })
})
