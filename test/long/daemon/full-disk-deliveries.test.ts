import { randomBytes } from 'node:crypto'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterAll, describe, expect, test } from 'vitest'
import { sampleEvent } from '../../../src/features/account/webhooks/send.ts'
import { INBOX_LOG_BYTES, inboxPath } from '../../../src/store/database/open.ts'
import { signDelivery } from '../../../src/webhooks/receive/signature.ts'
import { openWorld } from '../../support/daemons.ts'
import { emptyDisk, fillDisk, mountDisk, unmountDisk } from '../../support/small-disk.ts'

const mounted = mountDisk('96m')
const disk = mounted ?? ''
afterAll(() => mounted !== null && unmountDisk(mounted))
const SECRET = `whsec_${randomBytes(24).toString('base64')}`

async function deliver(url: string, id: string): Promise<number> {
  const event = {
    type: 'io.service.cr.image.created.v1',
    repository: 'a',
    tag: id,
    digest: null,
    arch: 'amd64',
  }
  const body = sampleEvent(id, Date.now(), event)
  const timestamp = Math.floor(Date.now() / 1000)
  const signature = signDelivery({ id, timestamp, body, secret: SECRET, dialect: 'standard' }) ?? ''
  const headers = {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signature,
  }
  const answer = await fetch(`${url}/-/webhooks`, {
    method: 'POST',
    headers,
    body: new Uint8Array(body),
  })
  await answer.arrayBuffer()
  return answer.status
}

/** Whether the log of deliveries was extended and copied into its database, so that the next delivery overwrites it. */
function isSetAside(data: string): boolean {
  const database = readFileSync(inboxPath(data))
  const pages = database.byteLength < SIZE_AT + 4 ? 0 : database.readUInt32BE(SIZE_AT)
  return pages * PAGE_BYTES >= INBOX_LOG_BYTES && pages * PAGE_BYTES === database.byteLength
}
/** Where a database says its number of pages; a copy begins with it, and ends with the last page. */
const SIZE_AT = 28
const PAGE_BYTES = 4096

/** Asks for the status, as a monitor that asks often, until the room for deliveries is set aside. */
async function watch(url: string, data: string): Promise<void> {
  for (; !isSetAside(data); await setTimeout(100)) await (await fetch(`${url}/-/status`)).arrayBuffer()
}

describe.skipIf(mounted === null)('on a full disk (needs the right to mount a tmpfs)', () => {
  test.each([
    ['after an earlier one', true],
    ['from the first one on', false],
  ])('deliveries are stored in the room set aside, %s', async (name, hasEarlier) => {
    emptyDisk(disk)
    const world = await openWorld({ records: 20 })
    try {
      const data = join(disk, name.replaceAll(' ', '-'))
      const env = { PATCHMIRROR_DATA_DIR: data, PATCHMIRROR_WEBHOOKS_SECRETS: SECRET }
      const daemon = await world.serve(env)
      await daemon.said(/osv sync: complete/)
      if (hasEarlier) expect(await deliver(daemon.url, 'first')).toBe(202)
      await watch(daemon.url, data)
      fillDisk(disk)
      const codes = new Set<number>()
      for (let n = 0; n < 50; n++) codes.add(await deliver(daemon.url, `event-${n}`))
      expect([...codes]).toEqual([202])
    } finally {
      await world.close()
      rmSync(join(disk, name.replaceAll(' ', '-')), { recursive: true, force: true })
    }
  })
})
