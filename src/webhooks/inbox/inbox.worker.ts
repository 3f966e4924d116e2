import { statfsSync } from 'node:fs'
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { type Db, INBOX_LOG_BYTES, inboxPath, openInbox } from '../../store/database/open.ts'
import { watchLoss } from '../../store/database/loss.ts'
import { createChangeCheck } from '../../store/database/change-check.ts'
import { collectWhenIdle } from '../../base/threads/idle-memory.ts'
import { type StopMessage, type WorkerStarted, openOrRefuse } from '../../base/threads/supervisor.ts'
import { type InboxCall, type InboxReply, answerBatch, createOperations } from './operations.ts'

/** What the inbox thread is started with. */
export interface InboxStart {
  readonly dataDir: string
}

export type ToInbox = InboxCall | StopMessage

export type FromInbox =
  | { readonly type: 'replies'; readonly replies: readonly InboxReply[] }
  /** The file of the database, which was lost, is at its path again. */
  | { readonly type: 'found' }

/** Idle time after which the write-ahead log is copied into the database, milliseconds: no commit waits for it then. */
const IDLE_MS = 1_000
/** How long nothing is asked before the log is extended, milliseconds: it takes the time that a start or a burst needs. */
const GROW_MS = 1_000
/** How long after the start questions can postpone that, milliseconds: a disk may fill while they do not end. */
const GROW_WITHIN_MS = 10_000

/**
 * The inbox thread: the daemon's only writer of webhooks.db. Requests that arrive within one iteration of its event loop are
 * processed together, so that a burst costs one fsync per iteration.
 */
function main(port: MessagePort): void {
  const { dataDir } = workerData as InboxStart
  const send = (message: FromInbox | WorkerStarted): void => port.postMessage(message)
  const db = openOrRefuse(port, () => openInbox(dataDir))
  if (db === null) return
  collectWhenIdle()
  const operations = createOperations(db)
  const othersWrote = createChangeCheck([db]) // such as the relay's thread
  const refuseLost = watchLoss(inboxPath(dataDir))
  let isLost = false
  const refuseLoss = (): void => {
    const wasLost = isLost
    isLost = true
    refuseLost()
    isLost = false
    if (wasLost) send({ type: 'found' })
  }
  let waiting: InboxCall[] = []
  let idle: NodeJS.Timeout | null = null
  const checkpoint = (): void => {
    idle = null
    try {
      db.pragma('wal_checkpoint(PASSIVE)')
    } catch {
      // A full disk is reported by the next commit, to its caller.
    }
  }
  const answer = (): void => {
    const questions = waiting
    waiting = []
    if (questions.length === 0) return
    send({ type: 'replies', replies: answerBatch(db, operations, questions, { dataDir, refuseLoss }) })
    if (performance.now() < growBefore) growing?.refresh() // it waits for the end of a burst
    const wrote = questions.some(({ asked }) => operations[asked.name].writes)
    if (!othersWrote() && !wrote) return
    if (idle === null) idle = setTimeout(checkpoint, IDLE_MS)
    else idle.refresh()
  }
  const grow = (): void => {
    growing = null
    growLog(db, dataDir)
  }
  const growBefore = performance.now() + GROW_WITHIN_MS
  let growing: NodeJS.Timeout | null = setTimeout(grow, GROW_MS)
  port.on('message', (message: ToInbox) => {
    if ('type' in message) {
      answer()
      if (growing !== null) clearTimeout(growing)
      if (idle !== null) clearTimeout(idle)
      db.close()
      port.close()
    } else if (waiting.push(message) === 1) setImmediate(answer)
  })
  send({ type: 'ready' })
}

const PIECES = 128
/** The part of the free bytes that growing may take: it must not be what fills a disk. */
const GROW_PART = 1 / 4

/**
 * Extends the write-ahead log to its usual size, once, where the disk has room. A commit that has to extend a file waits for the file
 * system's own journal, and in it for the writes of a running sync; one that overwrites existing blocks does not. The log is
 * reused from its beginning after each copy into the database.
 */
function growLog(db: Db, dataDir: string): void {
  try {
    const { bavail, bsize } = statfsSync(dataDir)
    if (INBOX_LOG_BYTES > bavail * bsize * GROW_PART) return
    // In pieces: one value of that size would be in memory as a whole.
    db.exec(
      `BEGIN; CREATE TABLE filler (bytes BLOB);
       WITH RECURSIVE piece (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM piece WHERE n < ${PIECES})
         INSERT INTO filler SELECT zeroblob(${Math.ceil(INBOX_LOG_BYTES / PIECES)}) FROM piece;
       DROP TABLE filler; COMMIT`,
    )
    db.pragma('wal_checkpoint(RESTART)')
  } catch {
    if (db.inTransaction) db.exec('ROLLBACK') // commits are slower, nothing else; a full disk is reported by the first one
  }
}

if (parentPort !== null) main(parentPort)
