import { MirrorError, messageOf, systemCode } from '../errors.ts'
import type { ImportReport } from './import-types.ts'
import { type Arrival, listArrivals, moveAside } from './inbox-files.ts'
import type { Manifest } from './manifest.ts'
import { type Bundle, type Trust, openBundle } from './open.ts'
import { refusalOf } from './refusals.ts'
import type { Tries } from './tries.ts'

/** What an inbox works with. */
export interface InboxDeps {
  readonly folder: string
  /** Never allows unsigned bundles. */
  readonly trust: Omit<Trust, 'allowUnsigned'>
  /** Throws as `applyBundle`. */
  readonly apply: (bundle: Bundle, file: string) => Promise<ImportReport>
  readonly now: () => number
  /** Which bundles ended the process; null: that is not looked for. */
  readonly tries?: Tries
  /** Something became of a bundle: for the log. */
  readonly onSettled: (settled: Settled) => void
}

/** What became of a bundle. `superseded`: what it brings is held already, or something newer is. */
export interface Settled {
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
  readonly lastRefused: { readonly file: string; readonly at: string } | null
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
export function createInbox(deps: InboxDeps): Inbox {
  const { folder, now } = deps
  const decisions = createDecisions(now)
  const counts = { imported: 0, superseded: 0, refused: 0 }
  let lastRefused: InboxStatus['lastRefused'] = null
  let problem: string | null = null

  const settle = (arrival: Arrival, outcome: Settled['outcome'], detail: string): void => {
    const at = new Date(now()).toISOString()
    counts[outcome]++
    if (outcome === 'imported') decisions.imported()
    if (outcome === 'refused') lastRefused = { file: arrival.name, at }
    const note = outcome === 'refused' ? `${at} ${detail}` : null
    const moved = moveAside(folder, outcome === 'refused' ? 'refused' : 'done', arrival, note)
    decisions.decide(arrival, moved ? 'gone' : null)
    deps.onSettled({ file: arrival.name, outcome, detail })
  }
  const fail = (arrival: Arrival, error: unknown): void => {
    const verdict = judge(error)
    if (verdict.outcome === 'waiting') decisions.decide(arrival, verdict.why)
    else settle(arrival, verdict.outcome, messageOf(error))
  }
  const opener = createOpener(deps, fail)
  const take = ({ arrival }: Head): Promise<unknown> =>
    opener.attempt(arrival, async () => {
      const bundle = await opener.open(arrival)
      const { outcome, sequence } = await deps
        .apply(bundle, arrival.name)
        .finally(() => bundle.close())
      const detail = `bundle ${sequence} (${bundle.manifest.kind})`
      settle(arrival, outcome === 'applied' ? 'imported' : 'superseded', detail)
    })
  return {
    async look() {
      let arrivals: Arrival[] = []
      try {
        arrivals = listArrivals(folder)
        problem = null
      } catch (error) {
        problem = systemCode(error) ?? 'it cannot be read'
      }
      decisions.forgetOthers(arrivals)
      for (const head of await opener.readHeads(decisions.due(arrivals))) await take(head)
    },
    status: () => ({ waiting: decisions.waiting(), ...counts, lastRefused, problem }),
  }
}

/** What of a bundle says when it is its turn. */
interface Head extends Pick<Manifest, 'mirror' | 'sequence' | 'kind'> {
  arrival: Arrival
}

/** Works with arrivals one at a time; of what fails, `fail` is told. */
function createOpener(
  { trust, tries }: InboxDeps,
  fail: (arrival: Arrival, error: unknown) => void,
) {
  const open = (arrival: Arrival): Promise<Bundle> =>
    openBundle(arrival.files, { ...trust, allowUnsigned: false })
  /** Null: it failed, or did so by ending the process again and again. */
  const attempt = async <T>(arrival: Arrival, work: () => Promise<T>): Promise<T | null> => {
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
  const readHead = (arrival: Arrival): Promise<Head | null> =>
    attempt(arrival, async () => {
      const bundle = await open(arrival)
      await bundle.close()
      const { mirror, sequence, kind } = bundle.manifest
      return { arrival, mirror, sequence, kind }
    })
  return {
    open,
    attempt,
    async readHeads(arrivals: readonly Arrival[]): Promise<Head[]> {
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

/** What was decided of a bundle as its files were then. `why` null: it is done with, and could not be moved. */
interface Decision {
  stamp: string
  why: string | null
  imports: number
  at: number
}

/** Which bundles are to be looked at, and which wait for what. */
function createDecisions(now: () => number) {
  const stamps = new Map<string, string>()
  const decisions = new Map<string, Decision>()
  let imports = 0
  const decide = ({ name, stamp }: Arrival, why: string | null): void => {
    if (why === 'gone') decisions.delete(name)
    else decisions.set(name, { stamp, why, imports, at: now() })
  }
  /** Files that have not changed since the last look, and of which nothing is decided that still holds. */
  const isDue = (arrival: Arrival): boolean => {
    const { name, stamp } = arrival
    if (stamps.get(name) !== stamp) {
      stamps.set(name, stamp)
      decide(arrival, ARRIVING)
      return false
    }
    const decision = decisions.get(name)
    if (decision === undefined) return true
    const { why, imports: then, at } = decision
    if (why === null || why === INCOMPLETE) return false
    if (why.startsWith(FAILED)) return now() - at >= RETRY_MS
    return !why.startsWith(WAITING_FOR) || then !== imports
  }
  return {
    decide,
    due: (arrivals: readonly Arrival[]) => arrivals.filter(isDue),
    imported() {
      imports++
    },
    forgetOthers(arrivals: readonly Arrival[]) {
      const names = new Set(arrivals.map(({ name }) => name))
      for (const name of [...decisions.keys(), ...stamps.keys()]) {
        if (names.has(name)) continue
        decisions.delete(name)
        stamps.delete(name)
      }
    },
    waiting: () =>
      [...decisions].flatMap(([file, { why }]) => (why === null ? [] : [{ file, why }])),
  }
}

const ARRIVING = 'still arriving'
const FAILED = 'failed: '
/** After a trouble of the mirror's own, such as a full disk: each try reads the whole bundle. */
const RETRY_MS = 5 * 60_000
const INCOMPLETE = 'incomplete: the rest has not arrived'
const WAITING_FOR = 'waiting for bundle'

type Verdict = { outcome: 'superseded' | 'refused' } | { outcome: 'waiting'; why: string }

function judge(error: unknown): Verdict {
  const refusal = refusalOf(error)
  if (refusal?.kind === 'older') return { outcome: 'superseded' }
  if (refusal?.kind === 'incomplete') return { outcome: 'waiting', why: INCOMPLETE }
  if (refusal?.kind === 'base') {
    const which = refusal.sequence === null ? ' of its need file' : ` ${refusal.sequence}`
    return { outcome: 'waiting', why: WAITING_FOR + which }
  }
  // The mirror's own troubles pass, and are no fault of the bundle.
  const isFault = error instanceof MirrorError && ['bundle', 'archive'].includes(error.code)
  if (isFault) return { outcome: 'refused' }
  const code = error instanceof MirrorError ? error.code : 'internal'
  return { outcome: 'waiting', why: code === 'locked' ? 'a sync is running' : FAILED + code }
}

/** In the order in which they are to be imported: by mirror, sequence, and a full one first. */
function compare(a: Head, b: Head): number {
  if (a.mirror !== b.mirror) return a.mirror < b.mirror ? -1 : 1
  return a.sequence - b.sequence || Number(a.kind === 'delta') - Number(b.kind === 'delta')
}
