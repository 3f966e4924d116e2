import fc from 'fast-check'
import { expect, test } from 'vitest'
import { signedState } from '../../src/store/catalog/signatures.ts'
import {
  type FindingsBench,
  affecting,
  componentsOf,
  expectAgreement,
  openFindingsBench,
  readFindings,
  sbomOf,
  vexAbout,
} from '../features/findings/fixtures.ts'

/** Histories; a judgement from the beginning follows each of their judgements. */
const RUNS = 20
/** Records that a history puts, changes and removes. */
const RECORDS = 3
/** Packages that these, VEX and patches are about: few, so that they meet. */
const PACKAGES = 2

type Step =
  | {
      do: 'record'
      which: number
      of: number
      fixed: number | null
      severity: string
      vendor: boolean
      /** About the source package of the component, where it has one. */
      source: boolean
      /** Of the component's release, of another one, or of none. */
      release: 'own' | 'other' | 'none'
      /** Of commits: nothing can be compared with it. */
      commits: boolean
    }
  | { do: 'image'; which: number; packages: number }
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
  /** What the signature of a tag's SBOM or VEX comes to, until the next crawl, by whose settings nothing is verified. */
  | { do: 'believe'; tag: number; kind: 'sbom' | 'vex'; state: 'verified' | 'failed'; compared: boolean }
  | { do: 'crawl' }
  | { do: 'judge' }
  /** The next judgement compares everything. */
  | { do: 'everything' }

/** Packages of images, with their releases and source packages, and one of an ecosystem without an order of versions. */
const IMAGE = [
  'pkg:deb/debian/libssl3@3.0.9-1?distro=debian-12&upstream=openssl',
  'pkg:deb/debian/libcurl4@7.88.1-1?upstream=curl%407.88.1-2',
  'pkg:conan/zlib@1.2.11',
  'pkg:deb/debian/libssl3@3.5.0-1?distro=debian-13&upstream=openssl',
  'pkg:apk/alpine/libcrypto3@3.1.4-r0?distro=alpine-3.18.6&upstream=openssl',
  'pkg:deb/ubuntu/libssl3@3.0.2-0ubuntu1?distro=ubuntu-22.04&upstream=openssl',
  'pkg:rpm/almalinux/perl-Errno@1.30-481.el9?distro=almalinux-9&upstream=perl-5.32.1-481.el9.src.rpm',
  'pkg:npm/left-pad@1.3.0',
]

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
        source: fc.boolean(),
        release: fc.constantFrom('own' as const, 'own' as const, 'own' as const, 'other' as const, 'none' as const),
        commits: fc.nat({ max: 4 }).map((one) => one === 0),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        do: fc.constant('image' as const),
        which: fc.nat({ max: 9 }),
        packages: fc.integer({ min: 1, max: IMAGE.length }),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({ do: fc.constant('remove record' as const), which: fc.nat({ max: RECORDS - 1 }) }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constantFrom('rotate' as const, 'remove tag' as const),
        which: fc.nat({ max: 9 }),
      }),
    },
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
    {
      weight: 4,
      arbitrary: fc.record({
        do: fc.constant('believe' as const),
        tag: fc.nat({ max: 9 }),
        kind: fc.constantFrom('vex' as const, 'vex' as const, 'sbom' as const),
        state: fc.constantFrom('verified' as const, 'failed' as const),
        compared: fc.boolean(),
      }),
    },
    { weight: 5, arbitrary: fc.record({ do: fc.constant('crawl' as const) }) },
    { weight: 8, arbitrary: fc.record({ do: fc.constant('judge' as const) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('everything' as const) }) },
  ),
  { minLength: 12, maxLength: 35, size: 'max' },
)

/** Numbers of each tag by its id. */
function countsOf(dir: string): Map<string, { findings: number; fixable: number; judged: boolean }> {
  const tags = readFindings(dir, (reads) => reads.listTags('', '', 1000))
  return new Map(
    tags.map(({ owner, findings, fixable, refusal }) => [owner, { findings, fixable, judged: refusal === null }]),
  )
}

/** A record about the component itself. */
const PLAIN = { source: false, release: 'own' as const, commits: false }

/** In which a finding is one of a source package, and then of another release. */
const BY_SOURCE: Step[] = [
  { do: 'image', which: 0, packages: IMAGE.length },
  { do: 'crawl' },
  { do: 'judge' },
  ...[0, 1].flatMap((of): Step[] => {
    const record = { do: 'record' as const, which: of, of, fixed: 9, severity: 'HIGH', vendor: false }
    const about = { ...PLAIN, source: true }
    return [{ ...record, ...about }, { do: 'judge' }, { ...record, ...about, release: 'other' }, { do: 'judge' }]
  }),
]

/** In which a finding gets a patch, and is ruled out. */
const EXAMPLE: Step[] = [
  { do: 'record', which: 0, of: 0, fixed: null, severity: 'HIGH', vendor: false, ...PLAIN },
  { do: 'judge' },
  { do: 'patch', which: 0, of: 0, status: 'done' },
  { do: 'crawl' },
  { do: 'judge' },
  { do: 'state', which: 0, of: 0, tag: 0, status: 'fixed', whole: true, day: 1 },
  { do: 'crawl' },
  { do: 'judge' },
  ...(['failed', 'verified', 'failed'] as const).flatMap((state): Step[] => {
    return [{ do: 'believe', tag: 0, kind: 'vex', state, compared: true }, { do: 'judge' }]
  }),
  { do: 'crawl' },
]

const cveOf = ({ which }: { which: number }): string => `CVE-2026-7700${which % 2}`

/** Has a tag's VEX state something about a package, itself or as a part of what SBOMs do not name. */
function state({ dir, sandbox: { service } }: FindingsBench, step: Extract<Step, { do: 'state' }>): void {
  const all = componentsOf(dir)
  const { packages } = all[step.of % all.length] ?? { packages: '[["",""]]' }
  const [[purl = ''] = []] = JSON.parse(packages) as string[][]
  const ids = service.ids('tags').filter((id) => service.documents('tag', id, 'vex').length > 0)
  const id = ids[step.tag % ids.length]
  if (id === undefined) return
  const product = step.whole ? { '@id': purl } : { '@id': 'pkg:oci/any', subcomponents: [{ '@id': purl }] }
  const at = `2026-05-0${step.day}T00:00:00Z`
  service.writeArtifact('tag', id, 'vex', vexAbout(cveOf(step), [product], step.status, at))
}

/** Stores what the signature of an artifact of a tag comes to, where signatures are enforced; nothing is published for it. */
async function believe({ store, sandbox }: FindingsBench, step: Extract<Step, { do: 'believe' }>): Promise<void> {
  const ids = sandbox.service.ids('tags')
  const id = ids[step.tag % ids.length] ?? ''
  const path = `/v1/tags/${id}/${step.kind}`
  const stored = store.catalog.readAnswer(path)
  const answer = stored === null ? null : signedState(stored)
  if (answer === null) return
  const subject = step.compared ? String(sandbox.service.read('tags', id)['digest']) : null
  const row = { path, answer, basis: '', state: step.state, signer: null, reason: null, subject, isEnforced: true }
  await store.exclusive(() => store.catalog.putSignature(row, false))
}

/** A record about a component, or its source package, or another release of it. */
function recordOf(
  step: Extract<Step, { do: 'record' }>,
  one: ReturnType<typeof componentsOf>[number],
  fixed: string | null,
): object {
  const { questions = [] } = (one.asked === '' ? {} : JSON.parse(one.asked)) as { questions?: string[][] }
  const name = (step.source ? questions.find(([, , , by]) => by === 'source')?.[1] : undefined) ?? one.name
  const base = one.ecosystem.split(':')[0] ?? ''
  const released = { own: one.ecosystem, other: `${base}:11`, none: base }[step.release]
  const record = affecting(step.vendor ? `Root:${released}` : released, name, fixed, step.severity)
  const aliases = [cveOf(step)]
  if (!step.commits) return { ...record, aliases }
  const [affected] = (record as { affected: object[] }).affected
  return { ...record, aliases, affected: [{ ...affected, ranges: [{ type: 'GIT', events: [] }] }] }
}

/** How often VEX ruled a finding out, and a patch was a fix: a history in which neither happens proves nothing of them. */
const met = { suppressed: 0, patched: 0, bySource: 0, gaps: 0 }

async function play(steps: readonly Step[]): Promise<void> {
  const bench = await openFindingsBench({}, () => undefined, 'warn')
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
      const sum = (of: (one: (typeof own)[number]) => number): number => own.reduce((total, one) => total + of(one), 0)
      expect(was.findings + sum(({ found, gone }) => found - gone)).toBe(tag.findings)
      expect(was.fixable + sum(({ fixes, fixesGone }) => fixes - fixesGone)).toBe(tag.fixable)
    }
    before = now
    await expectAgreement(bench)
    const known = bench.known()
    met.suppressed += known.tags.reduce((sum, { suppressed }) => sum + suppressed, 0)
    met.bySource += known.rows.filter((row) => row.includes(' by ')).length
    met.gaps += known.rows.filter((row) => row.includes(' gap1 ')).length
    met.patched += logged.filter(({ cause }) => cause === 'patches').length
  }
  for (const step of steps) {
    if (step.do === 'record') {
      const listed = componentsOf(dir)
      const withSource = listed.filter(({ asked }) => asked !== '')
      const all = step.source && withSource.length > 0 ? withSource : listed
      const one = all[step.of % all.length]
      if (one === undefined) continue
      const id = `T-${step.which}`
      records.add(id)
      const fixed = step.fixed === null ? null : `${step.fixed}.0`
      await bench.publish({ [id]: recordOf(step, one, fixed) })
    } else if (step.do === 'image') {
      const ids = service.ids('tags')
      const id = ids[step.which % ids.length]
      if (id === undefined) continue
      service.writeArtifact('tag', id, 'sbom', sbomOf('image', ...IMAGE.slice(0, step.packages)))
    } else if (step.do === 'state') state(bench, step)
    else if (step.do === 'believe') await believe(bench, step)
    else if (step.do === 'patch') {
      const all = componentsOf(dir)
      const { ecosystem, name } = all[step.of % all.length] ?? { ecosystem: '', name: '' }
      const [ticket = ''] = service.ids('tickets')
      const about = { ecosystem: ecosystem.split(':')[0], package_src_name: name }
      service.change('tickets', ticket, { ...about, cve_id: cveOf(step), ticket_status: step.status })
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
    else if (step.do === 'everything') bench.forgetForm()
    else if (step.do === 'judge') await look()
  }
  await look()
}

test('findings that follow changes are those of a judgement from the beginning, and the log adds up to them', async () => {
  await fc.assert(fc.asyncProperty(history, play), {
    numRuns: RUNS,
    examples: [[EXAMPLE], [BY_SOURCE]],
  })
  expect(Math.min(met.suppressed, met.patched, met.bySource, met.gaps)).toBeGreaterThan(0)
})
