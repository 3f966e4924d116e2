import { MirrorError } from '../../../base/errors.ts'
import type { SourceName } from '../../../base/domain/sources.ts'
import type { ExportedState, LedgerReader } from '../../../store/replication/ledger.ts'
import { EMPTY_DIGEST, combineDigests } from '../../../store/replication/rows.ts'
import { type SummaryHeader, type SummaryLines, linesOfSource, readSummary } from './summary.ts'
import type { ManifestBase } from '../format/manifest.ts'

/** A state of one source to which a delta shall apply; its lines can be read repeatedly. */
export interface KnownState {
  readonly digest: string
  readonly lines: () => Promise<SummaryLines>
}

/** The states on which a delta builds. */
export interface Base {
  readonly base: ManifestBase
  /** For each wanted source: the base's state, and those exported since. */
  readonly states: Partial<Record<SourceName, KnownState[]>>
}

/** Maximum number of states compared with one delta: each costs a pass over its summary. */
const MAX_STATES = 32

const HOW = 'export a full bundle instead (without --since and --for)'

/** Returns the exported state named by `--since`: a sequence, or the beginning of a snapshot id. Throws `usage`. */
export function findSince(ledger: LedgerReader, since: string): ExportedState {
  const exports = ledger.listExports()
  if (/^\d{1,9}$/.test(since))
    return usable(
      exports.find(({ sequence }) => sequence === Number(since)),
      since,
    )
  const start = since.toLowerCase()
  if (!/^[\da-f]{8,128}$/.test(start))
    throw new MirrorError(
      'usage',
      `--since takes the sequence of an export or a snapshot id (12 characters are enough), not ${since}`,
    )
  const has = ({ sources }: ExportedState): boolean =>
    Object.values(sources).some(({ snapshot }) => snapshot.startsWith(start))
  return usable(exports.findLast((one) => has(one) && one.kept) ?? exports.findLast(has), since)
}

function usable(found: ExportedState | undefined, name: string): ExportedState {
  if (found === undefined) throw new MirrorError('usage', `${name} was never exported by this mirror: ${HOW}`)
  if (found.kept) return found
  throw new MirrorError(
    'usage',
    `${name} was exported, but its summary is not stored any more (bundle.keep): ${HOW}, or run ` +
      '"patchmirror bundle need FILE" on the target mirror and use --for FILE here',
  )
}

/** Returns the base of a delta since an exported state: that state, and all exported after it. */
export function baseOfExport(ledger: LedgerReader, state: ExportedState, sources: readonly SourceName[]): Base {
  const later = ledger.listExports(state.sequence + 1).filter(({ kept }) => kept)
  const all = [state, ...later.slice(1 - MAX_STATES)]
  const states = Object.fromEntries(
    sources.map((source) => {
      const known = new Map<string, KnownState>()
      if (state.sources[source] === undefined) known.set(EMPTY_DIGEST, NOTHING)
      for (const { sequence, sources: exported } of all) {
        const digest = exported[source]?.digest
        if (digest === undefined || known.has(digest)) continue
        known.set(digest, { digest, lines: () => linesOf(ledger, sequence, source) })
      }
      return [source, [...known.values()]]
    }),
  )
  const digests = digestsBySource(sources, (source) => state.sources[source]?.digest)
  const base = { sequence: state.sequence, digest: combineDigests(digests), sources: digests }
  return { base, states }
}

const NOTHING: KnownState = { digest: EMPTY_DIGEST, lines: () => Promise.resolve(noLines()) }

async function* noLines(): SummaryLines {
  yield* await Promise.resolve([])
}

function digestsBySource(
  sources: readonly SourceName[],
  digestOf: (source: SourceName) => string | undefined,
): Partial<Record<SourceName, string>> {
  return Object.fromEntries(sources.map((source) => [source, digestOf(source) ?? EMPTY_DIGEST]))
}

async function linesOf(ledger: LedgerReader, sequence: number, source: SourceName): Promise<SummaryLines> {
  const summary = ledger.readExportSummary(sequence)
  if (summary === null) throw new MirrorError('internal', `no summary of export ${sequence}`)
  return linesIn(summary, source)
}

async function linesIn(summary: Buffer, source: SourceName): Promise<SummaryLines> {
  const { lines } = await readSummary([summary])
  return linesOfSource(lines, source)
}

/**
 * Returns the base of a delta for a need file. Its rows describe the state of the target mirror; a brief file only
 * identifies that state, whose summary must be stored here. Throws `bundle`, and `usage` with what to do.
 */
export async function baseOfNeed(ledger: LedgerReader, need: Buffer, sources: readonly SourceName[]): Promise<Base> {
  const { header } = await readSummary([need])
  const exported = findState(ledger, header, sources)
  if (exported?.kept === true) return baseOfExport(ledger, exported, sources)
  if (header.brief)
    throw new MirrorError(
      'usage',
      'this brief need file names a state whose summary is not stored here: write one with ' +
        `"patchmirror bundle need FILE" (without --brief) on the target mirror, or ${HOW}`,
    )
  const digests = digestsBySource(sources, (source) => header.sources[source]?.digest)
  const states = Object.fromEntries(
    sources.map((source) => {
      const digest = digests[source] ?? EMPTY_DIGEST
      return [source, [{ digest, lines: () => linesIn(need, source) }]]
    }),
  )
  const sequence = exported?.sequence ?? null
  return { base: { sequence, digest: combineDigests(digests), sources: digests }, states }
}

/** Returns the newest exported state that equals the state of the need file in the wanted sources. */
function findState(
  ledger: LedgerReader,
  { sources: needed }: SummaryHeader,
  wanted: readonly SourceName[],
): ExportedState | undefined {
  const isSame = ({ sources }: ExportedState): boolean =>
    wanted.every((source) => sources[source]?.digest === needed[source]?.digest)
  const found = ledger.listExports().filter(isSame)
  return found.findLast(({ kept }) => kept) ?? found.at(-1)
}
