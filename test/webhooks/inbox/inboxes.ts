import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { MirrorError } from '../../../src/base/errors.ts'
import { openInbox } from '../../../src/store/database/open.ts'
import type { NewDelivery } from '../../../src/store/webhooks/inbox.ts'
import { createCalls } from '../../../src/base/threads/calls.ts'
import {
  type InboxCall,
  type InboxQuestion,
  answerBatch,
  createOperations,
} from '../../../src/webhooks/inbox/operations.ts'
import { type InboxThread, type InboxThreadDeps, startInboxThread } from '../../../src/webhooks/inbox/thread.ts'

/** 2026-11-21T09:06:40Z, unix milliseconds: when the deliveries of these tests come. */
export const NOW = 1_795_252_000_000
/** How long the inboxes of these tests remember deliveries. */
const KEEP_MS = 600_000

/** A folder that is gone when the test ends. */
export function scratch(): string {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-inbox-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

/** A verified delivery; what a test is about goes over it. */
export function delivery(more: Partial<NewDelivery> = {}): NewDelivery {
  return {
    endpoint: 'default',
    webhookId: 'evt_1',
    state: 'pending',
    type: 'io.service.cr.image.created.v1',
    dialect: 'standard',
    secret: 'settings-1',
    target: null,
    receivedAt: NOW,
    storedAt: NOW,
    reason: null,
    body: Buffer.from('{"type":"io.service.cr.image.created.v1"}'),
    ...more,
  }
}

/** A running inbox thread that ends with the test, and what it told. */
export async function startInbox(
  dir: string,
  more: Partial<InboxThreadDeps> = {},
): Promise<InboxThread & { failures: string[] }> {
  const failures: string[] = []
  const thread = startInboxThread({
    dataDir: dir,
    keepMs: KEEP_MS,
    onFailed: (message) => failures.push(message),
    ...more,
  })
  onTestFinished(() => thread.close())
  await thread.started
  return Object.assign(thread, { failures })
}

/**
 * The operations of the inbox thread over a real database, in this thread: for tests of what is around the inbox. What comes
 * in one iteration of the event loop is one batch, as in the thread.
 */
export function openInboxHere(dir: string, { maxPending }: { maxPending?: number } = {}): InboxThread {
  const db = openInbox(dir)
  onTestFinished(() => void db.close())
  const operations = createOperations(db)
  const calls = createCalls<InboxQuestion, unknown>(() => new MirrorError('storage', 'the inbox is closed'))
  const call: InboxThread['call'] = async (name, ...args) => (await calls.call({ name, args })) as never
  let waiting: InboxCall[] = []
  const answer = (): void => {
    const questions = waiting
    waiting = []
    for (const reply of answerBatch(db, operations, questions, { dataDir: dir, refuseLoss: () => undefined }))
      calls.settle(structuredClone(reply))
  }
  calls.connect((question) => {
    if (waiting.push(structuredClone(question)) === 1) setImmediate(answer)
  })
  return {
    receive: (one) => call('receive', { ...one, body: new Uint8Array(one.body) }, maxPending),
    dead: (...args) => call('dead', ...args),
    nextDueAt: () => call('nextDueAt'),
    pending: async (...args) =>
      (await call('pending', ...args)).map((row) => ({ ...row, body: Buffer.from(row.body) })),
    settle: (settlements) => call('settle', settlements),
    counts: () => call('counts'),
    prune: (now) => call('prune', now - KEEP_MS),
    call,
    alive: true,
    started: Promise.resolve(),
    close: () => Promise.resolve(),
  }
}
