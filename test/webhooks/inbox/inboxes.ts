import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { NewDelivery } from '../../../src/store/webhooks/inbox.ts'
import {
  type InboxThread,
  type InboxThreadDeps,
  startInboxThread,
} from '../../../src/webhooks/inbox/thread.ts'

/** 2026-11-21T09:06:40Z, unix milliseconds: when the deliveries of these tests come. */
export const NOW = 1_795_252_000_000

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
  const thread = await startInboxThread({
    dataDir: dir,
    keepMs: 600_000,
    onFailed: (message) => failures.push(message),
    ...more,
  })
  onTestFinished(() => thread.close())
  return Object.assign(thread, { failures })
}
