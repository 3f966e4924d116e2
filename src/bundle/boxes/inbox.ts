import { messageOf, MirrorError, systemCode } from '../../core/errors.ts'
import type { KeyTrust } from '../format/keys.ts'
import type { Manifest } from '../format/manifest.ts'
import { type Bundle, openBundle } from '../import/open.ts'
import type { ImportReport } from '../import/types.ts'
import type { Tries } from './crash-counter.ts'
import { createDecisions, decide } from './inbox-decisions.ts'
import { type InboxFile, listArrivals, listSkipped, moveAside, stripPaths } from './inbox-files.ts'

/** What an inbox works with. */
interface InboxDeps {
  readonly folder: string
  /** Never allows unsigned bundles. */
  readonly trust: Omit<KeyTrust, 'allowUnsigned'>
  /** Throws as `applyBundle`. */
  readonly apply: (bundle: Bundle, file: string) => Promise<ImportReport>
  readonly now: () => number
  /** Which bundles ended the process; null: that is not looked for. */
  readonly tries?: Tries
  /** Something became of a bundle: for the log. */
  readonly onSettled: (settled: ImportResult) => void
  /** Something is wrong that is not a bundle's: told once, until it is over. */
  readonly onTrouble?: (message: string) => void
}

/** What became of a bundle. `superseded`: what it brings is held already, its date too, or something newer is. */
export interface ImportResult {
  readonly file: string
  readonly outcome: 'imported' | 'superseded' | 'refused'
  readonly detail: string
}

/** How the inbox stands; times in ISO 8601. Nothing in it tells of paths. */
export interface InboxStatus {
  readonly waiting: readonly { readonly file: string; readonly why: string }[]
  readonly imported: number
  readonly superseded: number
  readonly refused: number
  readonly lastRefused: {
    readonly file: string
    readonly at: string
    readonly why: string
  } | null
  /** Why it cannot be looked into, in the system's word; null: it can. */
  readonly problem: string | null
}

/** Looks for bundles, one look at a time. */
export interface Inbox {
  look(): Promise<void>
  status(): InboxStatus
}

/**
 * An inbox: what has arrived whole is imported in the order of its sequence and moved aside. Nothing is remembered but in
 * the folder and in the ledger: after a restart on a read-only medium everything is found to be held already.
 */
export function createInboxImporter(deps: InboxDeps): Inbox {
  const { folder, now, onTrouble = () => undefined } = deps
  const decisions = createDecisions(now)
  const counts = { imported: 0, superseded: 0, refused: 0 }
  let lastRefused: InboxStatus['lastRefused'] = null
  let problem: string | null = null
  let skips: ReadonlySet<string> = new Set()

  const settle = (arrival: InboxFile, outcome: ImportResult['outcome'], detail: string): void => {
    const at = new Date(now()).toISOString()
    counts[outcome]++
    if (outcome === 'imported') decisions.imported()
    if (outcome === 'refused')
      lastRefused = { file: arrival.name, at, why: stripPaths(detail, { inbox: folder }) }
    const note = outcome === 'refused' ? `${at} ${detail}` : null
    const moved = moveAside(folder, outcome === 'refused' ? 'refused' : 'done', arrival, note)
    decisions.decide(arrival, moved ? 'gone' : null)
    deps.onSettled({ file: arrival.name, outcome, detail })
  }
  const fail = (arrival: InboxFile, error: unknown): void => {
    const verdict = decide(error)
    if (verdict.outcome === 'waiting') decisions.decide(arrival, verdict.why)
    else settle(arrival, verdict.outcome, messageOf(error))
  }
  const opener = createOpener(deps, fail)
  const take = ({ arrival }: Head): Promise<unknown> =>
    opener.attempt(arrival, async () => {
      const bundle = await opener.open(arrival)
      const { outcome, renewed, sequence } = await deps
        .apply(bundle, arrival.name)
        .finally(() => bundle.close())
      const what = `bundle ${sequence} (${bundle.manifest.kind})`
      const detail = renewed ? `${what}: nothing changed up to a later date` : what
      settle(arrival, outcome === 'applied' || renewed ? 'imported' : 'superseded', detail)
    })
  return {
    async look() {
      let arrivals: InboxFile[] = []
      try {
        arrivals = listArrivals(folder)
        skips = reportSkipped(listSkipped(folder), skips, onTrouble)
        problem = null
      } catch (error) {
        const now = systemCode(error) ?? 'it cannot be read'
        if (now !== problem) onTrouble(`the inbox ${folder} cannot be looked into (${now})`)
        problem = now
      }
      decisions.forgetOthers(arrivals)
      for (const file of decisions.overdue())
        onTrouble(`inbox: ${file} has been incomplete for a day: send the rest, or remove it`)
      for (const head of await opener.readHeads(decisions.due(arrivals))) await take(head)
    },
    status: () => ({ waiting: decisions.waiting(), ...counts, lastRefused, problem }),
  }
}

/** Reports once what an inbox leaves alone. Returns all of it. */
function reportSkipped(
  names: readonly string[],
  known: ReadonlySet<string>,
  report: (message: string) => void,
): ReadonlySet<string> {
  for (const name of names)
    if (!known.has(name))
      report(
        `inbox: ${JSON.stringify(name)} is a link, a pipe or a folder and is left alone: put the bundle itself there`,
      )
  return new Set(names)
}

/** What of a bundle says when it is its turn. */
interface Head extends Pick<Manifest, 'mirror' | 'sequence' | 'kind'> {
  arrival: InboxFile
}

interface Opening {
  readonly trust: Omit<KeyTrust, 'allowUnsigned'>
  readonly tries?: Tries
}

/** Works with arrivals one at a time; of what fails, `fail` is told. */
function createOpener(
  { trust, tries }: Opening,
  fail: (arrival: InboxFile, error: unknown) => void,
) {
  const open = (arrival: InboxFile): Promise<Bundle> =>
    openBundle(arrival.files, { ...trust, allowUnsigned: false })
  /** Null: it failed, or did so by ending the process again and again. */
  const attempt = async <T>(arrival: InboxFile, work: () => Promise<T>): Promise<T | null> => {
    const id = `${arrival.name} ${arrival.stamp}`
    try {
      if (tries?.begin(id) === false) throw new MirrorError('bundle', DEADLY)
      return await work().finally(() => tries?.end(id))
    } catch (error) {
      fail(arrival, error)
      return null
    }
  }
  /** What bundles say of themselves. They are closed again: there may be more of them than files that can be open. */
  const readHead = (arrival: InboxFile): Promise<Head | null> =>
    attempt(arrival, async () => {
      const bundle = await open(arrival)
      await bundle.close()
      const { mirror, sequence, kind } = bundle.manifest
      return { arrival, mirror, sequence, kind }
    })
  return {
    open,
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

const DEADLY =
  'the process ended twice while it worked with it, so it is not tried again. To try again: "touch" it, and move it back'

/** In the order in which they are to be imported: by mirror, sequence, and a full one first. */
function compare(a: Head, b: Head): number {
  if (a.mirror !== b.mirror) return a.mirror < b.mirror ? -1 : 1
  return a.sequence - b.sequence || Number(a.kind === 'delta') - Number(b.kind === 'delta')
}
