import { basename, join } from 'node:path'
import { HOUR_MS, toIso } from '../../../base/time.ts'
import type { InboxStatus } from '../../../base/reports/transfer.ts'
import { MirrorError, messageOf, systemCode } from '../../../base/errors.ts'
import { nounOf } from '../../../base/text.ts'
import { makeTemporary } from '../../../store/temporary.ts'
import type { KeyTrust } from '../format/keys.ts'
import type { Manifest } from '../format/manifest.ts'
import { refusalOf } from '../format/refusal.ts'
import { type Bundle, openBundle } from '../import/open.ts'
import type { ImportReport } from '../import/types.ts'
import { beginsAsBundle, isThin } from '../thin/format.ts'
import { judgeThin, openThin } from '../thin/whole.ts'
import type { Tries } from './crash-counter.ts'
import { ARRIVING, MISNAMED, createDecisions, decide } from './decisions.ts'
import {
  type InboxFile,
  type Refused,
  listArrivals,
  listOthers,
  listRefused,
  listSkipped,
  mayBeThere,
  moveAside,
  stripPaths,
} from './inbox-files.ts'

/** Dependencies of an inbox. */
interface InboxDeps {
  readonly folder: string
  /** Where bundles are imported to. */
  readonly dataDir: string
  /** Never allows unsigned bundles. */
  readonly trust: Omit<KeyTrust, 'allowUnsigned'>
  /** Throws as `applyBundle`. */
  readonly apply: (bundle: Bundle, file: string) => Promise<ImportReport>
  /** Brings what else is to arrive into the folder, and names it while it does; called in each scan. Throws why it cannot. */
  readonly fetch?: (arriving: (name: string) => void) => Promise<void>
  /** Called after a look at a delta whose base is not what is stored here: the sender may know of another state. */
  readonly onMissingBase?: () => void
  /** Called when `fetch` has named what arrives. */
  readonly onArriving?: () => void
  readonly now: () => number
  /** Milliseconds that elapsed, whatever the clock does; those of this process when not given. */
  readonly elapsed?: () => number
  /** The last status of an earlier inbox of this folder, whose counts go on. */
  readonly before?: InboxStatus | null
  /** Counter of the bundles that ended the process; null: not counted. */
  readonly tries?: Tries
  /** Called with the result of a bundle, for the log. */
  readonly onSettled: (settled: ImportResult) => void
  /** Called with faults that no bundle caused: once per fault, until it has ended. */
  readonly onTrouble?: (message: string) => void
}

/** The result of a bundle. `superseded`: its content and its date are stored already, or newer ones are. */
export interface ImportResult {
  readonly file: string
  readonly outcome: 'imported' | 'superseded' | 'refused'
  readonly detail: string
}

/** Scans for bundles, one scan at a time. */
export interface Inbox {
  look(): Promise<void>
  status(): InboxStatus
}

/**
 * Creates an inbox: complete bundles are imported in order of their sequence and moved aside. Its only state is the
 * folder and the ledger: after a restart on a read-only medium all bundles are found to be stored already.
 */
export function createInboxImporter(deps: InboxDeps): Inbox {
  const { folder, now, elapsed = () => performance.now(), before = null, onTrouble = () => undefined } = deps
  const decisions = createDecisions({ now, elapsed })
  const counts = countsOf(before)
  const refusals = createRefusals(folder, before)
  const troubles = createTroubles(onTrouble)
  const carrier = createCarrier(deps)
  let skips: ReadonlySet<string> = new Set()
  let missesBase = false

  const settle = (arrival: InboxFile, outcome: ImportResult['outcome'], detail: string): void => {
    const at = toIso(now())
    counts[outcome]++
    if (outcome === 'imported') decisions.imported()
    const note = outcome === 'refused' ? `${at} ${detail}` : null
    const moved = moveAside(folder, outcome === 'refused' ? 'refused' : 'done', arrival, note)
    const file = moved ?? basename(arrival.files[0] ?? arrival.name)
    if (outcome === 'refused') refusals.add({ file, at, why: stripPaths(detail, { inbox: folder }) })
    decisions.decide(arrival, moved === null ? null : 'gone')
    deps.onSettled({ file: arrival.name, outcome, detail })
  }
  const fail = (arrival: InboxFile, error: unknown): void => {
    // Somebody took it away meanwhile, or the medium: that says nothing of the bundle.
    if (!arrival.files.every(mayBeThere)) return decisions.decide(arrival, 'gone')
    const verdict = decide(error, decisions.proven())
    missesBase ||= refusalOf(error)?.kind === 'base'
    if (verdict.outcome !== 'waiting') return settle(arrival, verdict.outcome, messageOf(error))
    decisions.decide(arrival, stripPaths(verdict.why, { inbox: folder }), verdict.clock)
    if (verdict.clock !== null) onTrouble(`inbox: ${arrival.name}: ${verdict.why}`)
  }
  const opener = createOpener(deps, fail)
  const take = ({ arrival }: Head): Promise<unknown> =>
    opener.attempt(arrival, async () => {
      const bundle = await opener.open(arrival)
      decisions.proves(Date.parse(bundle.manifest.createdAt))
      const { outcome, renewed, sequence } = await deps.apply(bundle, arrival.name).finally(() => bundle.close())
      const what = `bundle ${sequence} (${bundle.manifest.kind})`
      const detail = renewed ? `${what}: nothing changed up to a later date` : what
      settle(arrival, outcome === 'applied' || renewed ? 'imported' : 'superseded', detail)
    })
  return {
    async look() {
      const { arrivals, others, skipped, faults } = await arrived(carrier, folder)
      if (faults.some(isAborted)) return
      faults.push(...stuckIn(decisions, deps.fetch !== undefined))
      troubles.see(faults.map((fault) => describeFault(fault, folder)))
      if (faults.length === 0) refusals.forgetRemoved()
      skips = reportSkipped(skipped, skips, onTrouble)
      decisions.forgetOthers([...arrivals, ...others])
      reportMisnamed(others, decisions, onTrouble)
      reportOverdue(decisions.overdue(), onTrouble)
      for (const head of await opener.readHeads(decisions.due(arrivals))) await take(head)
      if (missesBase) deps.onMissingBase?.()
      missesBase = false
    },
    status() {
      const waiting = [...decisions.waiting(), ...carrier.arriving()]
      return { waiting, ...counts, lastRefused: refusals.last(), problem: troubles.problem() }
    },
  }
}

/** Refused bundles that are remembered. */
const MOST_REFUSALS = 100

/** Remembers refused bundles until somebody has removed their files, and so has seen them; also those of an earlier process. */
function createRefusals(folder: string, before: InboxStatus | null) {
  let refusals = before === null ? null : [before.lastRefused ?? []].flat()
  return {
    add: (refused: Refused): void => void (refusals ??= []).push(refused),
    forgetRemoved(): void {
      refusals ??= listRefused(folder)
      refusals = refusals.filter(({ file }) => mayBeThere(join(folder, file))).slice(-MOST_REFUSALS)
    },
    last: () => refusals?.at(-1) ?? null,
  }
}

/** What is in the folder now, and what went wrong when more was brought or the folder was read. */
interface Arrived {
  readonly arrivals: InboxFile[]
  readonly others: InboxFile[]
  readonly skipped: readonly string[]
  readonly faults: unknown[]
}

/** Brings what else is to arrive, and lists all that is there. Never throws. */
async function arrived(carrier: ReturnType<typeof createCarrier>, folder: string): Promise<Arrived> {
  const faults: unknown[] = []
  await carrier.fetch().catch((error: unknown) => faults.push(error))
  try {
    return { arrivals: listArrivals(folder), others: listOthers(folder), skipped: listSkipped(folder), faults }
  } catch (error) {
    return { arrivals: [], others: [], skipped: [], faults: [...faults, error] }
  }
}

/** How long a delta may wait in a folder for another bundle until that is a problem, milliseconds. */
const STUCK_MS = 6 * HOUR_MS

/** A tag names one artifact: what that waits for does not come by it. */
function stuckIn(decisions: ReturnType<typeof createDecisions>, isOfTag: boolean): MirrorError[] {
  const stuck = decisions.stuck(isOfTag ? 0 : STUCK_MS)
  if (stuck === null) return []
  if (!isOfTag) {
    const how =
      'carry that again, or run "patchmirror bundle need FILE" here and "patchmirror bundle export OUT --for FILE" above'
    return [new MirrorError('not_ready', `${stuck}, for six hours: ${how}`)]
  }
  const next = 'export a whole bundle to the tag, or a delta since a bundle that is stored here, or import that one'
  return [new MirrorError('not_ready', `${stuck}, which the tag does not name: ${next}`)]
}

function isAborted(error: unknown): boolean {
  return error instanceof MirrorError && error.code === 'aborted'
}

/** A fault that no bundle caused; `message` is for people. */
interface Trouble {
  readonly code: string
  readonly message: string
}

/** Reports what is wrong once, until it has ended. */
function createTroubles(report: (message: string) => void) {
  let problem: string | null = null
  return {
    /** Takes what is wrong now; none: it has ended. */
    see(troubles: readonly Trouble[]): void {
      for (const { code, message } of troubles) {
        if (code !== problem) report(message)
        problem = code
      }
      if (troubles.length === 0) problem = null
    },
    /** The code of the last error; null: nothing is wrong. */
    problem: () => problem,
  }
}

function describeFault(error: unknown, folder: string): Trouble {
  if (error instanceof MirrorError) return { code: error.code, message: `inbox: ${error.message}` }
  const code = systemCode(error) ?? 'it cannot be read'
  const next = code === 'ENOENT' ? ': mount its medium, or make the folder' : ''
  return { code, message: `the inbox ${folder} cannot be read (${code})${next}` }
}

/** Brings what else is to arrive, and knows what it brings now. */
function createCarrier({ fetch, onArriving }: Pick<InboxDeps, 'fetch' | 'onArriving'>) {
  let coming: string | null = null
  return {
    async fetch(): Promise<void> {
      try {
        await fetch?.((name) => {
          coming = name
          onArriving?.()
        })
      } finally {
        coming = null
      }
    },
    arriving: () => (coming === null ? [] : [{ file: coming, why: ARRIVING }]),
  }
}

function countsOf(before: InboxStatus | null) {
  const { imported = 0, superseded = 0, refused = 0 } = before ?? {}
  return { imported, superseded, refused }
}

/** Names in a message, at most: an inbox may have tens of thousands of entries, and their message is one line. */
const MOST_NAMED = 3

/** Returns the first names, and how many more there are. */
export function named(names: readonly string[]): string {
  const shown = names.slice(0, MOST_NAMED)
  const rest = names.length - shown.length
  return rest === 0 ? shown.join(', ') : `${shown.join(', ')} and ${rest} more`
}

/** Reports bundles that have been incomplete for long, in one line. */
function reportOverdue(names: readonly string[], report: (message: string) => void): void {
  if (names.length === 0) return
  const have = nounOf(names.length, 'has', 'have')
  const what = nounOf(names.length, 'it', 'them')
  report(`inbox: ${named(names)} ${have} been incomplete for a day: send the rest, or remove ${what}`)
}

/** Decides about files of other names that have arrived, and reports once, in one line, those that are bundles. */
function reportMisnamed(
  others: readonly InboxFile[],
  { due, decide }: Pick<ReturnType<typeof createDecisions>, 'due' | 'decide'>,
  report: (message: string) => void,
): void {
  const arrived = due(others)
  const hidden = arrived.filter(({ files }) => files.some(beginsAsBundle))
  for (const other of arrived) decide(other, hidden.includes(other) ? MISNAMED : null)
  const names = hidden.map(({ name }) => JSON.stringify(name))
  if (names.length > 0) report(`inbox: ${named(names)}: ${MISNAMED}`)
}

/** Reports new ignored entries once, in one line. Returns all of them. */
function reportSkipped(
  names: readonly string[],
  known: ReadonlySet<string>,
  report: (message: string) => void,
): ReadonlySet<string> {
  const added = names.filter((name) => !known.has(name)).map((name) => JSON.stringify(name))
  const are = nounOf(added.length, 'is a link, a pipe or a folder and is', 'are links, pipes or folders and are')
  if (added.length > 0) report(`inbox: ${named(added)} ${are} ignored: put the bundle file itself there`)
  return new Set(names)
}

/** The fields of a manifest that determine the import order. */
interface Head extends Pick<Manifest, 'mirror' | 'sequence' | 'kind'> {
  arrival: InboxFile
}

interface Opening {
  readonly dataDir: string
  readonly trust: Omit<KeyTrust, 'allowUnsigned'>
  readonly tries?: Tries
}

/** Processes bundles one at a time; calls `fail` for each that fails. */
function createOpener(opening: Opening, fail: (arrival: InboxFile, error: unknown) => void) {
  const { dataDir, tries } = opening
  const trust: KeyTrust = { ...opening.trust, allowUnsigned: false }
  /** Returns null if it failed now, or ended the process in earlier attempts. */
  const attempt = async <T>(arrival: InboxFile, work: () => Promise<T>, id = idOf(arrival)): Promise<T | null> => {
    try {
      if (tries?.begin(id) === false) throw new MirrorError('bundle', DEADLY)
      return await work().finally(() => tries?.end(id))
    } catch (error) {
      fail(arrival, error)
      return null
    }
  }
  /** Reads the head of a bundle and closes it: there may be more bundles than files that can be open. */
  const readHead = (arrival: InboxFile): Promise<Head | null> => {
    const read = async (): Promise<Head> => {
      const { mirror, sequence, kind } = (await judge(arrival.files, trust)).manifest
      return { arrival, mirror, sequence, kind }
    }
    return attempt(arrival, read, `head ${idOf(arrival)}`) // its end says nothing of an import that never ended
  }
  return {
    open: (arrival: InboxFile) => openArrived(arrival.files, dataDir, trust),
    attempt,
    async readHeads(arrivals: readonly InboxFile[]): Promise<Head[]> {
      const heads: Head[] = []
      for (const arrival of arrivals) {
        const head = await readHead(arrival)
        if (head !== null) heads.push(head)
      }
      return heads.sort(compare)
    },
  }
}

/** Returns what attempts with a bundle are counted by, for the state of its files. */
function idOf({ name, stamp }: InboxFile): string {
  return `${name} ${stamp}`
}

/** Reads what a bundle says of itself. Throws as `openBundle`. */
async function judge(files: readonly string[], trust: KeyTrust): Promise<Pick<Bundle, 'manifest'>> {
  const [file = ''] = files
  if (isThin(file)) return judgeThin(file, trust)
  const bundle = await openBundle(files, trust)
  await bundle.close()
  return bundle
}

/** Opens a bundle; of a thin one, its whole one is made and removed when it is closed. Throws as `openBundle` and `openThin`. */
async function openArrived(files: readonly string[], dataDir: string, trust: KeyTrust): Promise<Bundle> {
  const [file = ''] = files
  if (!isThin(file)) return openBundle(files, trust)
  const temporary = makeTemporary(dataDir)
  try {
    const bundle = await openThin(file, { dataDir, whole: join(temporary.folder, 'bundle.zip'), trust })
    return { ...bundle, close: () => bundle.close().finally(() => temporary.remove()) }
  } catch (error) {
    temporary.remove()
    throw error
  }
}

const DEADLY =
  'the process ended twice while importing it, so it is not retried. To retry: "touch" it, and move it back into the inbox'

/** Orders bundles for import: by mirror, then sequence, full before delta. */
function compare(a: Head, b: Head): number {
  if (a.mirror !== b.mirror) return a.mirror < b.mirror ? -1 : 1
  return a.sequence - b.sequence || Number(a.kind === 'delta') - Number(b.kind === 'delta')
}
