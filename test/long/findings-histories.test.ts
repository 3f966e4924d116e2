import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  type FindingsBench,
  affecting,
  componentsOf,
  openFindingsBench,
  readFindings,
  vexAbout,
  visibleRows,
} from '../findings/fixtures.ts'

/** Histories; a judgement from the beginning follows each of their judgements. */
const RUNS = 20
/** Records that a history puts, changes and removes. */
const RECORDS = 3
/** Packages that these, VEX and patches are about: few, so that they meet. */
const PACKAGES = 2

type Step =
  | { do: 'record'; which: number; of: number; fixed: number | null; severity: string; vendor: boolean } // prettier-ignore
  | { do: 'remove record'; which: number }
  | { do: 'rotate' | 'remove tag'; which: number }
  | { do: 'add tag' }
  | {
      do: 'state'
      which: number
      of: number
      tag: number
      status: string
      whole: boolean
      day: number
    }
  | { do: 'patch'; which: number; of: number; status: string }
  | { do: 'crawl' }
  | { do: 'judge' }

const history: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({
        do: fc.constant('record' as const),
        which: fc.nat({ max: RECORDS - 1 }),
        of: fc.nat({ max: PACKAGES - 1 }),
        fixed: fc.option(fc.nat({ max: 10 })),
        severity: fc.constantFrom('CRITICAL', 'HIGH', 'LOW', ''),
        vendor: fc.boolean(),
      }),
    },
    { weight: 3, arbitrary: fc.record({ do: fc.constant('remove record' as const), which: fc.nat({ max: RECORDS - 1 }) }) }, // prettier-ignore
    { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('rotate' as const, 'remove tag' as const), which: fc.nat({ max: 9 }) }) }, // prettier-ignore
    { weight: 1, arbitrary: fc.record({ do: fc.constant('add tag' as const) }) },
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant('state' as const),
        which: fc.nat({ max: RECORDS - 1 }),
        of: fc.nat({ max: PACKAGES - 1 }),
        tag: fc.nat({ max: 9 }),
        status: fc.constantFrom('not_affected', 'not_affected', 'fixed', 'affected'),
        whole: fc.boolean(),
        day: fc.integer({ min: 1, max: 9 }),
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant('patch' as const),
        which: fc.nat({ max: RECORDS - 1 }),
        of: fc.nat({ max: PACKAGES - 1 }),
        status: fc.constantFrom('done', 'done', 'open'),
      }),
    },
    { weight: 5, arbitrary: fc.record({ do: fc.constant('crawl' as const) }) },
    { weight: 8, arbitrary: fc.record({ do: fc.constant('judge' as const) }) },
  ),
  { minLength: 12, maxLength: 35, size: 'max' },
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

/** In which a finding gets a patch, and is ruled out. */
const EXAMPLE: Step[] = [
  { do: 'record', which: 0, of: 0, fixed: null, severity: 'HIGH', vendor: false },
  { do: 'judge' },
  { do: 'patch', which: 0, of: 0, status: 'done' },
  { do: 'crawl' },
  { do: 'judge' },
  { do: 'state', which: 0, of: 0, tag: 0, status: 'fixed', whole: true, day: 1 },
  { do: 'crawl' },
]

const cveOf = ({ which }: { which: number }): string => `CVE-2026-7700${which % 2}`

/** Has a tag's VEX state something about a package, itself or as a part of what SBOMs do not name. */
function state(
  { dir, sandbox: { service } }: FindingsBench,
  step: Extract<Step, { do: 'state' }>,
): void {
  const all = componentsOf(dir)
  const { packages } = all[step.of % all.length] ?? { packages: '[["",""]]' }
  const [[purl = ''] = []] = JSON.parse(packages) as string[][]
  const ids = service.ids('tags').filter((id) => service.documents('tag', id, 'vex').length > 0)
  const id = ids[step.tag % ids.length]
  if (id === undefined) return
  const product = step.whole ? { '@id': purl } : { '@id': 'pkg:oci/any', subcomponents: [{ '@id': purl }] } // prettier-ignore
  const at = `2026-05-0${step.day}T00:00:00Z`
  service.writeArtifact('tag', id, 'vex', vexAbout(cveOf(step), [product], step.status, at))
}

/** How often VEX ruled a finding out, and a patch was a fix: a history in which neither happens proves nothing of them. */
const met = { suppressed: 0, patched: 0 }

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
    met.suppressed += known.tags.reduce((sum, { suppressed }) => sum + suppressed, 0)
    met.patched += logged.filter(({ cause }) => cause === 'patches').length
    const matched = await Promise.all(known.tags.map(({ owner }) => bench.matched(owner)))
    expect(visibleRows(known)).toEqual(matched.flat().sort())
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
      const record = {
        ...affecting(ecosystem, one.name, fixed, step.severity),
        aliases: [cveOf(step)],
      }
      await bench.publish({ [id]: record })
    } else if (step.do === 'state') state(bench, step)
    else if (step.do === 'patch') {
      const all = componentsOf(dir)
      const { ecosystem, name } = all[step.of % all.length] ?? { ecosystem: '', name: '' }
      const [ticket = ''] = service.ids('tickets')
      const about = { ecosystem: ecosystem.split(':')[0], package_src_name: name }
      service.change('tickets', ticket, { ...about, cve_id: cveOf(step), ticket_status: step.status }) // prettier-ignore
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
  await fc.assert(fc.asyncProperty(history, play), { numRuns: RUNS, examples: [[EXAMPLE]] })
  expect(Math.min(met.suppressed, met.patched)).toBeGreaterThan(0)
})
