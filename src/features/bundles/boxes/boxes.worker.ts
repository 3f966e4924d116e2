import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { toIso } from '../../../base/time.ts'
import { inboxFolder, watchedTag } from '../../../config/kinds/inbox.ts'
import type { Config } from '../../../config/schema.ts'
import { MirrorError, messageOf } from '../../../base/errors.ts'
import { goOffline } from '../../../base/offline.ts'
import { makeFolder } from '../../../base/files.ts'
import { openReader } from '../../../store/database/open.ts'
import { createReads } from '../../../store/reads.ts'
import { createCarriedReader } from '../../../store/replication/reader.ts'
import { openWrites } from '../../../store/writes.ts'
import { collectWhenIdle } from '../../../base/threads/idle-memory.ts'
import type { StopMessage, WorkerStarted } from '../../../base/threads/supervisor.ts'
import { applyBundle } from '../import/apply.ts'
import type { BoxesStatus } from '../../../base/reports/transfer.ts'
import { type Inbox, type ImportResult, createInboxImporter } from './inbox.ts'
import { readSigningKeys, trustOf } from '../format/keys.ts'
import { type Shipped, fillOutbox } from './outbox.ts'
import { type Attempt, createTries } from './crash-counter.ts'
import { writeReceipt } from './receipts.ts'
import { nameBoxFault, stripPaths } from './inbox-files.ts'
import { createTagWatch } from './tag-watch.ts'

/** Start data of the thread of inbox and outbox. */
export interface BoxesStart {
  readonly config: Pick<Config, 'bundle' | 'catalog' | 'data' | 'upstream' | 'network'>
  readonly version: string
  readonly offline: boolean
  /** The last status of the thread before this one, which ended. */
  readonly before: BoxesStatus
}

export type ToBoxes = { readonly type: 'published' } | StopMessage

export type FromBoxes =
  | { readonly type: 'status'; readonly status: BoxesStatus }
  | { readonly type: 'attempt'; readonly attempt: Attempt | null }
  | { readonly type: 'settled'; readonly settled: ImportResult }
  | { readonly type: 'shipped'; readonly shipped: Shipped }
  | { readonly type: 'fault'; readonly message: string }

/** Pause before a failed export is retried, milliseconds; the next snapshot also retries it. */
const RETRY_MS = 60_000

/** Runs the thread: exports after each snapshot and imports new bundles, one after the other. */
function main(port: MessagePort): void {
  const start = workerData as BoxesStart
  const { bundle } = start.config
  if (start.offline) goOffline()
  const send = (message: FromBoxes | WorkerStarted): void => port.postMessage(message)
  let status = start.before
  const show = (more: Partial<BoxesStatus>): void => {
    status = { ...status, ...more }
    send({ type: 'status', status })
  }
  const queue = createQueue()
  const folder = inboxFolder(start.config)
  const watching = { onArriving: () => showInbox(), isEnding: queue.isEnding }
  const inbox = folder === null ? null : openInbox(start, folder, send, watching)
  const showInbox = (): void => show({ inbox: inbox?.status() ?? null })
  const look = async (): Promise<void> => {
    await inbox?.look()
    showInbox()
  }
  const out = bundle.outbox === null ? null : createOut(start, bundle.outbox, send, show)
  const published = (): void => queue.add('outbox', () => out?.() ?? Promise.resolve(true), RETRY_MS)
  const scan = (): void => queue.add('inbox', () => look().then(() => true), null)
  const polling = inbox === null ? undefined : setInterval(scan, bundle.pollSeconds * 1000)
  port.on('message', (message: ToBoxes) => {
    if (message.type === 'published') return published()
    clearInterval(polling)
    void queue.end().then(() => port.close())
  })
  collectWhenIdle()
  send({ type: 'ready' })
  if (inbox !== null) {
    showInbox() // the first look may take as long as a bundle takes to arrive
    scan()
  }
  published()
}

function openInbox(
  { config, before }: BoxesStart,
  folder: string,
  send: (message: FromBoxes) => void,
  { onArriving, isEnding }: { readonly onArriving: () => void; readonly isEnding: () => boolean },
): Inbox {
  const { keys, revoked } = trustOf(config, { allowUnsigned: false, now: Date.now })
  const tag = watchedTag(config.bundle)
  try {
    if (tag !== null || !hasImportedFromInbox(config.data.dir)) makeFolder(folder)
  } catch {
    // The first scan reports what is wrong with the folder.
  }
  return createInboxImporter({
    folder,
    dataDir: config.data.dir,
    ...(tag === null ? {} : { fetch: createTagWatch(config, tag, folder, { isEnding }) }),
    onArriving,
    trust: { keys, revoked, now: Date.now },
    now: Date.now,
    before: before.inbox,
    tries: createTries(config.data.dir, (attempt) => send({ type: 'attempt', attempt })),
    async apply(bundle, file) {
      const store = openWrites(config.data.dir)
      try {
        const report = await applyBundle({ config, store, bundle, file, trigger: 'inbox', now: Date.now })
        if (tag === null) writeReceipt(folder, store, report)
        return report
      } finally {
        store.close()
      }
    },
    onMissingBase: () => (tag === null ? describeStored(config.data.dir, folder, send) : undefined),
    onSettled: (settled) => send({ type: 'settled', settled }),
    onTrouble: (message) => send({ type: 'fault', message }),
  })
}

/** Reports whether the last imports had one from an inbox: a folder that is not there then is of a medium that is not mounted. */
function hasImportedFromInbox(dataDir: string): boolean {
  const db = openReader(dataDir)
  if (db === null) return false
  try {
    const imports = createReads(db).runs.findRuns({
      before: Infinity,
      source: '',
      kind: 'import',
      state: '',
      limit: 100,
    })
    return imports.some(({ trigger }) => trigger === 'inbox')
  } finally {
    db.close()
  }
}

/** Writes a receipt of what is stored now: a restored mirror has less than its last one says. */
function describeStored(dataDir: string, folder: string, send: (message: FromBoxes) => void): void {
  try {
    const db = openReader(dataDir)
    if (db === null) return
    try {
      db.exec('BEGIN')
      writeReceipt(folder, { ...createReads(db), carried: createCarriedReader(db) }, null)
    } finally {
      db.close()
    }
  } catch (error) {
    send({ type: 'fault', message: `the receipt in the inbox is not written: ${messageOf(error)}` })
  }
}

/** The daemon starts although the file of a key is lost: it serves without it. */
const NO_KEY =
  'bundle.signingKeys could not be read at the start ("patchmirror config" says why): put the key back, or name ' +
  'another ("patchmirror bundle keygen FILE" makes one), and restart the daemon'

/** Returns a function that fills the outbox once; it resolves with false on failure. */
function createOut(
  { config, version, before }: BoxesStart,
  folder: string,
  send: (message: FromBoxes) => void,
  show: (status: Pick<BoxesStatus, 'outbox'>) => void,
): () => Promise<boolean> {
  const keys = readSigningKeys(config.bundle.signingKeys)
  const program = `patchmirror/${version}`
  const { trustRoot } = config.catalog
  const deps = { settings: config.bundle, folder, dataDir: config.data.dir, keys, trustRoot, program }
  let last = before.outbox?.last ?? null
  return async () => {
    show({ outbox: { last, exporting: true, problem: null, reason: null } })
    try {
      if (keys.length === 0) throw new MirrorError('config', NO_KEY)
      const onTrouble = (message: string): void => send({ type: 'fault', message })
      const shipped = await fillOutbox({ ...deps, now: Date.now, onTrouble })
      if (shipped !== null) {
        const { sequence, kind, file, bytes } = shipped
        const receipts = shipped.receipts && stripPaths(shipped.receipts, { outbox: folder, data: config.data.dir })
        last = { sequence, kind, file, bytes, at: toIso(Date.now()), receipts }
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
        message: `the export to the outbox failed: ${messageOf(error)}; it is retried`,
      })
      return false
    }
  }
}

/** Runs one task at a time; a task that is already waiting is not added again. A failed task is retried after a pause. */
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
    isEnding: () => ending,
    async end(): Promise<void> {
      ending = true
      await running
    },
  }
}

if (parentPort !== null) main(parentPort)
