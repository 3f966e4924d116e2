import { surroundingsOf } from '../../base/identity/surroundings.ts'
import { originNotAfter, readOrigin } from '../../server/http/origin.ts'
import { createViewsInUse, isDamage } from '../scanners/routes/generation.ts'
import { missingOf } from '../../server/snapshot/missing.ts'
import { notReady } from '../../server/snapshot/not-ready.ts'
import { createStaleRule, refuseStale } from '../../server/snapshot/stale.ts'
import type { Config } from '../../config/schema.ts'
import { toIso } from '../../base/time.ts'
import { activeSources, ageSecondsOf } from '../../base/domain/sources.ts'
import { type ScopeSettings, describeOsvScope, parseScopeText, takesAllOf } from '../../base/domain/osv-scope.ts'
import type { ShortReads } from '../../store/reads.ts'
import { whyWithheld } from '../../store/runs/rejected.ts'
import type { Views } from '../scanners/store/reads.ts'
import { createByteLimit, judgeComponents } from './judging/judge.ts'
import { judgeSourceOf } from './judging/package-source.ts'
import { isFixable, joinPatches, patchesNotApplied } from './judging/patches.ts'
import { type MatchFinding, isPartlyJudged } from './judging/finding.ts'
import { gapsOf } from './gaps.ts'
import type { MatchResult, MatchSnapshot, MatchVex } from './result.ts'
import type { InputSbom } from '../../documents/sboms/sbom.ts'
import { LEVELS } from '../../documents/records/severity.ts'
import { applyVex } from '../../documents/vex/apply.ts'
import { imagesOfSbom } from './judging/sbom-images.ts'

/** How an SBOM is judged. */
interface MatchRequest {
  /** Unix milliseconds. */
  readonly now: number
  /** Stamp of the served snapshots, where newer ones are kept back; null: the newest. */
  readonly served: string | null
  /** Called from time to time; throws to stop. */
  readonly check: () => void
  /** Whether what belongs to the catalog may be used, which takes a key: VEX and the list of patches. */
  readonly catalog: boolean
  /** False: VEX is not applied, so that what it rules out is among the findings. */
  readonly vex?: boolean
  /** The distribution and release of components that name none, such as `debian-12`; null: it is not known. */
  readonly distro?: string | null
  /** Most bytes of findings as JSON; no limit when not given. */
  readonly maxBytes?: number
}

/**
 * Creates the matcher of a data folder; the reads stay the caller's to close. An SBOM whose views are replaced and removed
 * meanwhile is judged again, by the new ones.
 */
export function createMatcher(config: Config, shortReads: ShortReads) {
  const views = createViewsInUse(config.data.dir, null, null)
  return {
    /** Throws `not_ready` before the first views, `stale` when the age of the data refuses it, `bad_request`. */
    async match(sbom: InputSbom, request: MatchRequest): Promise<MatchResult> {
      for (;;) {
        views.refresh()
        const current = views.current()
        try {
          return await matchSbom({ config, shortReads, views: current }, sbom, request)
        } catch (error) {
          views.refresh()
          if (!isDamage(error) || views.current() === current) views.met(error)
        }
      }
    },
    close: (): void => views.close(),
  }
}

interface MatcherParts {
  readonly config: Config
  readonly shortReads: ShortReads
  readonly views: Views
}

async function matchSbom(
  { config, shortReads, views }: MatcherParts,
  sbom: InputSbom,
  request: MatchRequest,
): Promise<MatchResult> {
  const { now, served, check, maxBytes, catalog: withCatalog, vex: withVex = true } = request
  const snapshot = shortReads.during(() => snapshotOf(config, shortReads, views.info, now), served)
  const { components, format, name, enveloped, systems } = sbom
  const around = surroundingsOf({ systems, option: request.distro ?? null })
  const source = judgeSourceOf(views)
  const add = createByteLimit(maxBytes ?? Infinity)
  const judged = await judgeComponents(components, source, { check, around, add })
  const { vex, isOwnUnknown, suppressed, findings, patches } = shortReads.during(() => {
    const ruled = ruleOut({ config, shortReads }, judged.findings, {
      now,
      sbom,
      check,
      whyNot: whyWithoutVex(withCatalog, withVex),
    })
    return {
      ...ruled,
      ...patchesFor(ruled.findings, { reads: shortReads.reads, check, withCatalog }),
    }
  }, served)
  for (const one of suppressed) add(one.vex)
  for (const one of findings) for (const patch of one.patches) add(patch)
  const { packages, notJudged, allReleases, binaryNameOnly, rebuilt, unreadReleases, withoutRecords, compared } = judged
  const partEcosystems = partOf(
    shortReads.during(() => scopeOf(shortReads.reads), served),
    judged.ecosystems,
  )
  const counts = {
    components: components.length,
    packages,
    notJudged: notJudged.length,
    allReleases,
    binaryNameOnly,
    rebuilt,
    ...countFindings(findings),
    suppressed: suppressed.length,
  }
  const unjudged = notJudged.filter((one) => !isPartlyJudged(one)).length
  const judgedBy = {
    packages,
    judged: packages - unjudged,
    isCompared: compared + judged.findings.length > 0,
    snapshot,
    vex,
    isOwnUnknown,
    patches,
    systems,
    incomplete: sbom.incomplete,
    ofAnother: sbom.ofAnother,
    unreadReleases,
  }
  const gaps = gapsOf({ ...judgedBy, partEcosystems }, now)
  const answer = { findings, suppressed, vex, patches, notJudged, withoutRecords }
  return { sbom: { format, name, enveloped }, snapshot, counts, ...answer, gaps }
}

function scopeOf({ snapshots }: ShortReads['reads']): ScopeSettings | null {
  return parseScopeText(snapshots.readSnapshot('osv')?.scope ?? null)
}

/** Returns those of some ecosystems of which a scope does not take all records. */
function partOf(scope: ScopeSettings | null, ecosystems: readonly string[]): string[] {
  return scope === null ? [] : ecosystems.filter((one) => !takesAllOf(scope, one))
}

/** Returns why the mirrored VEX is not used; null: it is. */
function whyWithoutVex(withCatalog: boolean, withVex: boolean): string | null {
  if (!withCatalog) return NO_KEY
  return withVex ? null : NOT_WANTED
}

/** Takes out what the mirrored VEX rules out; `whyNot`: why it is not used, null: it is. */
function ruleOut(
  { config, shortReads }: Pick<MatcherParts, 'config' | 'shortReads'>,
  findings: readonly MatchFinding[],
  { now, sbom, check, whyNot }: { now: number; sbom: InputSbom; check: () => void; whyNot: string | null },
) {
  const state = whyNot === null ? vexStateOf(config, shortReads, now) : vexNotApplied(whyNot)
  if (state.notApplied !== null) return { vex: state, isOwnUnknown: false, findings, suppressed: [] }
  const images = imagesOfSbom(shortReads, sbom)
  const { documents, unread, ...found } = applyVex(findings, {
    reads: shortReads.vex,
    images,
    now,
    check,
  })
  return { vex: { ...state, documents, unread }, ...found }
}

/** Joins findings with the mirrored list of patches, where it may be used. */
function patchesFor(
  findings: readonly MatchFinding[],
  { reads, check, withCatalog }: { reads: ShortReads['reads']; check: () => void; withCatalog: boolean },
) {
  return withCatalog ? joinPatches(findings, reads, check) : patchesNotApplied(findings, PATCHES_NO_KEY)
}

const NOT_WANTED = '--no-vex was given'
const NO_CATALOG = 'this mirror has no catalog, and so no VEX'
const NO_KEY = 'VEX belongs to the catalog: it is applied for clients with a key of this mirror'
const PATCHES_NO_KEY = 'the list of patches belongs to the catalog: it is joined for clients with a key of this mirror'

function vexNotApplied(reason: string): MatchVex {
  return { notApplied: reason, snapshot: null, asOf: null, stale: null, documents: 0, unread: 0, missing: 0 }
}

/** Describes the mirrored VEX, or why there is none to apply. */
function vexStateOf(config: Config, { reads }: ShortReads, now: number): MatchVex {
  const stored = readOrigin(reads, 'catalog')
  if (stored === null) {
    const isExpected = activeSources(config).includes('catalog')
    return vexNotApplied(isExpected ? notReady(reads, 'catalog', 'the catalog').message : NO_CATALOG)
  }
  const oldest = reads.catalog.readVexConfirmedAt() ?? undefined
  const origin = createStaleRule(config, () => now)('catalog', originNotAfter(stored, oldest))
  const { asOf, snapshot, stale } = origin
  if (stale?.refused === true)
    return vexNotApplied(`the mirrored VEX is as of ${asOf}, ${stale.limit}, and server.staleAction is refuse`)
  const missing = reads.catalog.countMissingVex()
  return { notApplied: null, snapshot, asOf, stale: stale?.limit ?? null, documents: 0, unread: 0, missing }
}

/** Describes the snapshot of the views. Throws `stale`. */
function snapshotOf(config: Config, { reads }: ShortReads, info: Views['info'], now: number): MatchSnapshot {
  const stored = reads.snapshots.readSnapshot('osv')
  const own = readOrigin(reads, 'osv')
  const isCurrent = stored?.id === info.snapshot
  const origin =
    own !== null && isCurrent
      ? own
      : { source: 'osv' as const, snapshot: info.snapshot, asOf: toIso(info.asOf), version: '' }
  const { asOf, stale } = refuseStale(createStaleRule(config, () => now)('osv', origin))
  const scope = scopeOf(reads)
  return {
    id: info.snapshot,
    publishedAt: stored !== null && isCurrent ? toIso(stored.publishedAt) : null,
    asOf,
    ageSeconds: ageSecondsOf(Date.parse(asOf), now),
    stale: stale?.limit ?? null,
    quarantined: reads.quarantine.countOpen('osv'),
    withheld: whyWithheld(reads, 'osv'),
    ...missingOf(reads, 'osv', info.snapshot),
    scope: scope === null ? null : describeOsvScope(scope),
  }
}

/** Returns the numbers of findings. */
function countFindings(findings: readonly MatchFinding[]) {
  const levels = [...LEVELS, 'unknown' as const].map((level) => [
    level,
    findings.filter(({ severity }) => (severity.level ?? 'unknown') === level).length,
  ])
  return {
    vulnerable: new Set(findings.map(({ component }) => component)).size,
    findings: findings.length,
    fixable: findings.filter(isFixable).length,
    levels: Object.fromEntries(levels) as MatchResult['counts']['levels'],
  }
}
