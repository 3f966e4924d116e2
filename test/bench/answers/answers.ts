import { count, milliseconds, seconds } from '../report/figures.ts'
import { type Line, type Options, type Value, atMost, defineGroup, ratio } from '../report/group.ts'
import { type SandboxProcess, startSandbox } from '../world/processes.ts'
import { CHANGED, type Guarded, compareGuard } from './guard.ts'
import { type Matched, matchSbom } from './match.ts'
import { CHANGED_RECORDS, type JudgedTags, type MirroredTags, mirrorTags } from './tags.ts'

const RECORDS = 100_000
const FEW = 5_000
const COMPONENTS = 10_000
/** Their catalog is mirrored within two minutes, at each measurement. */
const TAGS = 1_000
/** What a year brings, by which sizes are written. */
const A_YEAR = { changes: 30 * 365, records: 20_000 }

interface Run {
  readonly matched: Matched
  readonly few: Guarded
  readonly many: Guarded
  readonly tags: JudgedTags
}

interface World {
  readonly few: SandboxProcess
  readonly many: SandboxProcess
  readonly tags: MirroredTags
  close(): Promise<void>
}

/**
 * What the history answers, and what it costs: an SBOM, the guard, superseded versions and dates. That a plain GET of a record
 * is as fast as before these needs the program of before, and is not here; the group `serving` compares it with others.
 */
export const answers = defineGroup<World, Run>({
  name: 'answers',
  about: ({ size }) => `An SBOM of ${count(size(COMPONENTS))} components by ${count(size(RECORDS))} records.`,
  async prepare({ size }) {
    const few = await startSandbox(size(FEW))
    const many = await startSandbox(size(RECORDS))
    const tags = await mirrorTags(size(TAGS))
    const close = async (): Promise<void> => {
      await few.stop()
      await many.stop()
      await tags.close()
    }
    return { few, many, tags, close }
  },
  async run({ few, many, tags }, { size }) {
    const matched = await matchSbom(many.url, size(COMPONENTS))
    const judged = await tags.judgeTwice()
    return { matched, tags: judged, few: await compareGuard(few), many: await compareGuard(many) }
  },
  lines: (options) => [...matchLines(), ...tagLines(options), ...guardLines(options), ...sizeLines],
})

function matchLines(): Line<Run>[] {
  return [
    {
      work: 'patchmirror match, with its start',
      unit: 's',
      goal: atMost(1000),
      measure: ({ matched: { commandMs, findings } }) => {
        return { value: commandMs, detail: `${count(findings)} findings` }
      },
    },
    {
      work: 'POST /-/match, not the first',
      unit: 's',
      goal: atMost(1000),
      measure: ({ matched }) => matched.requestMs,
    },
  ]
}

function tagLines({ size }: Options): Line<Run>[] {
  const work = `SBOMs of ${count(size(TAGS))} tags`
  return [
    {
      work: `${work} judged first, processor time`,
      unit: 's',
      measure: ({ tags: { first, components, records } }) => {
        const detail = `${count(components)} packages, ${count(records)} records`
        return { value: first.cpuMs, detail }
      },
    },
    {
      work: `again, ${CHANGED_RECORDS} records changed`,
      against: 'first',
      unit: '×',
      goal: atMost(0.1),
      measure({ tags: { first, next } }) {
        const { value, detail } = ratio(next.cpuMs, first.cpuMs, seconds)
        return { value, detail: `${detail}, ${count(next.report.records.components)} compared` }
      },
    },
  ]
}

function guardLines({ size }: Options): Line<Run>[] {
  const line = (records: number, of: (run: Run) => Guarded): Line<Run> => ({
    work: `guard of ${CHANGED} changes in ${count(size(records))}, processor time`,
    against: 'without it',
    unit: '×',
    goal: atMost(1.1),
    measure: (run) => {
      const { onMs, offMs } = of(run)
      return Number.isNaN(onMs) ? null : ratio(onMs, offMs, milliseconds)
    },
  })
  return [line(FEW, ({ few }) => few), line(RECORDS, ({ many }) => many)]
}

const sizeLines: Line<Run>[] = [
  {
    work: 'replaced versions of a year, 30 a day',
    unit: 'MB',
    measure: ({ many: { stored } }) => yearOf(stored.versionBytes, stored.versions, A_YEAR.changes),
  },
  {
    work: `dates of ${count(A_YEAR.records)} new records`,
    unit: 'MB',
    measure: ({ many: { stored } }) => yearOf(stored.dateBytes, stored.records, A_YEAR.records),
  },
]

function yearOf(bytes: number, things: number, aYear: number): Value {
  const each = bytes / things
  return { value: each * aYear, detail: `${count(each)} bytes each` }
}
