import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import type { Config } from '../../config/schema.ts'
import { MirrorError, messageOf } from '../../core/errors.ts'
import { makeFolder } from '../../core/files.ts'
import { openWrites } from '../../store/writer.ts'
import type { StopMessage, WorkerStarted } from '../../threads/supervisor.ts'
import { applyBundle } from '../import/apply.ts'
import { type Inbox, type InboxStatus, type ImportResult, createInboxImporter } from './inbox.ts'
import { readSigningKey, trustOf } from '../format/keys.ts'
import { type Shipped, fillOutbox } from './outbox.ts'
import { createTries } from './crash-counter.ts'
import { nameBoxFault, stripPaths } from './inbox-files.ts'

/** What the thread of inbox and outbox is started with. */
export interface BoxesStart {
  readonly config: Pick<Config, 'bundle' | 'data'>
  readonly version: string
}

/** How the outbox stands; times in ISO 8601. */
interface OutboxStatus {
  /** What was put into it last since the start; null: nothing yet. */
  readonly last:
    (Pick<Shipped, 'sequence' | 'kind' | 'file' | 'bytes'> & { readonly at: string }) | null
  readonly exporting: boolean
  /** The code of what went wrong the last time; null: nothing did. */
  readonly problem: string | null
  /** The same in words, without the names of folders. */
  readonly reason: string | null
}

/** How both stand; null for one that the settings do not ask for. */
export interface BoxesStatus {
  readonly outbox: OutboxStatus | null
  readonly inbox: InboxStatus | null
}

export type ToBoxes = { readonly type: 'published' } | StopMessage

export type FromBoxes =
  | { readonly type: 'status'; readonly status: BoxesStatus }
  | { readonly type: 'settled'; readonly settled: ImportResult }
  | { readonly type: 'shipped'; readonly shipped: Shipped }
  | { readonly type: 'fault'; readonly message: string }

/** A failed export is tried again after this long, or with the next snapshot. */
const RETRY_MS = 60_000

/** So often is looked whether the date in the outbox is too far behind: a few reads. */
const DATE_MS = 60_000

/** The thread: exports after each snapshot, imports what arrives, one after the other. */
function main(port: MessagePort): void {
  const start = workerData as BoxesStart
  const { bundle } = start.config
  const send = (message: FromBoxes | WorkerStarted): void => port.postMessage(message)
  let status: BoxesStatus = { outbox: null, inbox: null }
  const show = (more: Partial<BoxesStatus>): void => {
    status = { ...status, ...more }
    send({ type: 'status', status })
  }
  const queue = createQueue()
  const inbox = bundle.inbox === null ? null : openInbox(start, bundle.inbox, send)
  const look = async (): Promise<void> => {
    await inbox?.look()
    show({ inbox: inbox?.status() ?? null })
  }
  const out = bundle.outbox === null ? null : createOut(start, bundle.outbox, send, show)
  const published = (): void =>
    queue.add('outbox', () => out?.() ?? Promise.resolve(true), RETRY_MS)
  const looking = (): void => queue.add('inbox', () => look().then(() => true), null)
  const timers = [
    ...(inbox === null ? [] : [setInterval(looking, bundle.pollSeconds * 1000)]),
    // That upstream was asked, and has nothing new, publishes nothing.
    ...(out === null ? [] : [setInterval(published, DATE_MS)]),
  ]
  port.on('message', (message: ToBoxes) => {
    if (message.type === 'published') return published()
    for (const timer of timers) clearInterval(timer)
    void queue.end().then(() => port.close())
  })
  send({ type: 'ready' })
  if (inbox !== null) looking()
  published()
}

function openInbox(
  { config }: BoxesStart,
  folder: string,
  send: (message: FromBoxes) => void,
): Inbox {
  const { keys, revoked } = trustOf(config, { allowUnsigned: false, now: Date.now })
  try {
    makeFolder(folder)
  } catch {
    // What is wrong with it is told by the first look.
  }
  return createInboxImporter({
    ...{ folder, trust: { keys, revoked, now: Date.now }, now: Date.now },
    tries: createTries(config.data.dir),
    async apply(bundle, file) {
      const store = openWrites(config.data.dir)
      try {
        return await applyBundle({ config, store, bundle, file, trigger: 'inbox', now: Date.now })
      } finally {
        store.close()
      }
    },
    onSettled: (settled) => send({ type: 'settled', settled }),
    onTrouble: (message) => send({ type: 'fault', message }),
  })
}

/** Fills the outbox once; false when that failed. */
function createOut(
  { config, version }: BoxesStart,
  folder: string,
  send: (message: FromBoxes) => void,
  show: (status: Pick<BoxesStatus, 'outbox'>) => void,
): () => Promise<boolean> {
  const keys = config.bundle.signingKeys.map(readSigningKey)
  const program = `patchmirror/${version}`
  const deps = { settings: config.bundle, folder, dataDir: config.data.dir, keys, program }
  let last: OutboxStatus['last'] = null
  return async () => {
    show({ outbox: { last, exporting: true, problem: null, reason: null } })
    try {
      const shipped = await fillOutbox({ ...deps, now: Date.now })
      if (shipped !== null) {
        const { sequence, kind, file, bytes } = shipped
        last = { sequence, kind, file, bytes, at: new Date().toISOString() }
        send({ type: 'shipped', shipped })
      }
      show({ outbox: { last, exporting: false, problem: null, reason: null } })
      return true
    } catch (thrown) {
      const error = nameBoxFault(thrown, 'outbox', folder, config.data.dir)
      const problem = error instanceof MirrorError ? error.code : 'internal'
      const reason = stripPaths(messageOf(error), { outbox: folder, data: config.data.dir })
      show({ outbox: { last, exporting: false, problem, reason } })
      send({
        type: 'fault',
        message: `the outbox was not filled: ${messageOf(error)}; it is tried again`,
      })
      return false
    }
  }
}

/** One piece of work at a time; the same that waits already is not added again. What fails is tried again after a pause. */
function createQueue() {
  const waiting = new Map<string, () => Promise<void>>()
  let running: Promise<void> | null = null
  let ending = false
  const run = async (): Promise<void> => {
    for (;;) {
      const [next] = waiting
      if (next === undefined || ending) return
      waiting.delete(next[0])
      await next[1]()
    }
  }
  const begin = (): void => {
    running ??= run().finally(() => (running = null))
  }
  const add = (name: string, work: () => Promise<boolean>, retryMs: number | null): void => {
    waiting.set(name, async () => {
      const done = await work()
      if (!done && retryMs !== null) setTimeout(() => add(name, work, retryMs), retryMs).unref()
    })
    begin()
  }
  return {
    add,
    async end(): Promise<void> {
      ending = true
      await running
    },
  }
}

if (parentPort !== null) main(parentPort)
