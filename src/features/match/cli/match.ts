import type { Config } from '../../../config/schema.ts'
import { MirrorError } from '../../../base/errors.ts'
import { counted, nounOf } from '../../../base/text.ts'
import { createMatcher } from '../matcher.ts'
import { whyNoRelease } from '../judging/components.ts'
import { isFixable } from '../judging/patches.ts'
import { type MatchFinding, isPartlyJudged, isUnjudged } from '../judging/finding.ts'
import type { MatchResult } from '../result.ts'
import { sarifReport } from '../sarif.ts'
import { vulnerabilityReport } from '../vdr.ts'
import { buildPackageIndex } from '../../lookup/package-index.ts'
import { visibleLines } from '../../../cli/output.ts'
import { print, printJson, settings, warn } from '../../../cli/context.ts'
import { closing } from '../../../cli/store-access.ts'
import { matchLines } from './match-lines.ts'
import { readSbomFile } from './sbom-file.ts'
import { type LookupOptions, UNKNOWN, openLookup, refuseLookup } from '../../lookup/open.ts'

/** Options of `patchmirror match`. */
interface MatchOptions extends LookupOptions {
  format?: string
  failOn?: string
  /** False: VEX is not applied. */
  vex?: boolean
  /** The distribution and release of components that name none. */
  distro?: string
}

/** Exit code where findings are of the kind that `--fail-on` names. */
const FOUND = 1

/**
 * `patchmirror match SBOM`: the vulnerabilities of an SBOM's components, from the data folder alone. Exit code 1 where
 * `--fail-on` applies, for `unjudged` where a package was not judged completely; 3 where the mirror cannot know, with `--fail-on` also where no component was judged or what is mirrored is
 * partial or of an unknown age; 2 for what is no SBOM.
 */
export async function matchCommand(file: string, options: MatchOptions): Promise<number> {
  const failsOn = failureOf(options.failOn)
  const write = writerOf(options)
  const distro = distroOf(options)
  const { config } = settings(options, false, [])
  try {
    const sbom = await readSbomFile(file)
    const reads = openLookup(config)
    const result = await closing(reads, async () => {
      const missing = await buildPackageIndex(config)
      if (missing !== null) throw new MirrorError('not_ready', missing)
      const matcher = createMatcher(config, reads)
      const request = {
        now: Date.now(),
        served: null,
        check: () => undefined,
        catalog: true,
        vex: options.vex !== false,
        distro,
      }
      return closing(matcher, () => matcher.match(sbom, request))
    })
    write(result, file, config)
    warnUnknown(options.failOn, result)
    if (result.findings.some(failsOn)) return FOUND
    const isUnjudged = warnUnjudged(result)
    if (options.failOn === undefined) return 0
    if (warnShare(result, options.failOn) && options.failOn === UNJUDGED) return FOUND
    return warnGaps(result, options.failOn, failsOn) || isUnjudged ? UNKNOWN : 0
  } catch (error) {
    return refuseLookup(error, options.json === true || options.format === 'json', null)
  }
}

/** Fails for packages that are not judged, or not completely, whatever is found. */
const UNJUDGED = 'unjudged'

const FAILURES: Readonly<Record<string, (finding: MatchFinding) => boolean>> = {
  any: () => true,
  fixable: isFixable,
  high: ({ severity: { level } }) => level === 'critical' || level === 'high',
  critical: ({ severity: { level } }) => level === 'critical',
  [UNJUDGED]: () => false,
}

/** The values of `--fail-on`. */
const FAIL_ON = Object.keys(FAILURES)

function failureOf(name: string | undefined): (finding: MatchFinding) => boolean {
  if (name === undefined) return () => false
  const failsOn = Object.hasOwn(FAILURES, name) ? FAILURES[name] : undefined
  if (failsOn !== undefined) return failsOn
  throw new MirrorError('usage', `--fail-on takes one of ${FAIL_ON.join(', ')}, not ${name}`)
}

function distroOf({ distro }: MatchOptions): string | null {
  const why = distro === undefined ? null : whyNoRelease(distro)
  if (why !== null) throw new MirrorError('usage', `--distro ${why}`)
  return distro ?? null
}

/** Says how many packages are not judged, or not completely, where anything depends on it; returns whether there are any. */
function warnShare({ counts, notJudged }: MatchResult, failOn: string): boolean {
  const unjudged = notJudged.filter(isUnjudged).length
  if (unjudged === 0) return false
  const packages = counts.packages - (notJudged.length - unjudged)
  const what = `${unjudged} of ${counted(packages, 'package')} ${nounOf(unjudged, 'was', 'were')} not judged, or not completely`
  const hint = failOn === UNJUDGED ? '' : ': --fail-on unjudged fails for such packages'
  warn(`${what}${hint}`)
  return true
}

/** Says that a threshold by severity passes over findings whose records state none. */
function warnUnknown(failOn: string | undefined, { counts }: MatchResult): void {
  const { unknown } = counts.levels
  if ((failOn !== 'critical' && failOn !== 'high') || unknown === 0) return
  warn(
    `the records of ${counted(unknown, 'finding')} state no severity: --fail-on ${failOn} does not count ${nounOf(unknown, 'it', 'them')}`,
  )
}

/** Says that nothing is known of an SBOM in which no component was judged, and returns whether it is so. */
function warnUnjudged({ counts, notJudged }: MatchResult): boolean {
  const partly = notJudged.filter(isPartlyJudged).length
  if (counts.packages > counts.notJudged - partly) return false
  const what = counts.packages === 0 ? 'has no components' : 'has no component that could be judged'
  warn(`the SBOM ${what}: nothing is known about its vulnerabilities`)
  return true
}

/** Says what the mirror does not know that decides about `--fail-on`, and returns whether there is any. */
function warnGaps(
  { gaps, suppressed, findings }: MatchResult,
  failOn: string,
  failsOn: (finding: MatchFinding) => boolean,
): boolean {
  const decides = {
    age: true,
    records: true,
    vex: suppressed.some(failsOn),
    patches: failOn === 'fixable' && findings.length > 0,
    release: false,
  }
  const deciding = gaps.filter(({ code }) => decides[code])
  for (const { reason } of deciding)
    warn(`nothing found is of the kind of --fail-on ${failOn}, but that is not certain: ${reason}`)
  return deciding.length > 0
}

type Writer = (result: MatchResult, file: string, config: Config) => void

const WRITERS: Readonly<Record<string, Writer>> = {
  table: (result, _file, config) => {
    for (const line of matchLines(result, config, Date.now())) print(visibleLines(line))
  },
  json: (result) => printJson(result),
  cyclonedx: (result) => printJson(vulnerabilityReport(result, Date.now())),
  sarif: (result, file) => printJson(sarifReport(result, file === '-' ? 'stdin' : file)),
}

function writerOf({ format, json }: MatchOptions): Writer {
  const name = format ?? (json === true ? 'json' : 'table')
  const writer = Object.hasOwn(WRITERS, name) ? WRITERS[name] : undefined
  if (writer !== undefined && (json !== true || name === 'json')) return writer
  const known = Object.keys(WRITERS).join(', ')
  throw new MirrorError(
    'usage',
    json === true ? '--json and --format exclude each other' : `--format takes one of ${known}, not ${name}`,
  )
}
