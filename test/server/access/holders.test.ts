import { once } from 'node:events'
import { type IncomingMessage, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, onTestFinished, test } from 'vitest'
import { createAccess } from '../../../src/server/access/access.ts'
import { createHolders } from '../../../src/server/access/holders.ts'
import { createTrust } from '../../../src/server/http/client-address.ts'
import { openPinnedReads } from '../../../src/store/reads.ts'
import { closeAll, serve } from '../served.ts'

afterEach(closeAll)

const KEY = 'Zk3v9wq7Rt5y2Lm8'

/** Opens who may read what, where loopback addresses may, or not. */
async function open(openLoopback: boolean) {
  const { dir } = await serve((store) => store.publishOsv({ one: '{}' }))
  const reads = openPinnedReads(dir)
  if (reads === null) throw new Error('no database')
  onTestFinished(() => reads.close())
  const trusted = createTrust([])
  const settings = { keys: [KEY], openLoopback, publicUrl: null, socket: null }
  const access = createAccess({
    settings: { ...settings, host: '127.0.0.1', trustProxy: [] },
    reads,
    trusted,
    listeningOn: () => '127.0.0.1',
    log: null,
    now: () => 0,
  })
  return { access, holderOf: createHolders(trusted, (request) => access.hasKey(request)) }
}

/** Returns a request as a server gets it from this machine. */
async function requestWith(authorization: string): Promise<IncomingMessage> {
  const server = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  fetch(`http://127.0.0.1:${port}/`, { headers: { authorization } }).catch(() => undefined)
  const [request] = (await once(server, 'request')) as [IncomingMessage]
  return request
}

test.each([
  [`Bearer ${KEY}`, true],
  [`Basic ${Buffer.from(`${KEY}:`).toString('base64')}`, true],
  ['Bearer wrong', false],
  ['Basic ***', false],
])('a client of a loopback address that sends %s has a key: %s', async (authorization, has) => {
  const { holderOf } = await open(true)
  expect(holderOf(await requestWith(authorization)).hasKey()).toBe(has)
})

test('a wrong key is counted when it is refused, and not when it is looked at who has a key', async () => {
  const { access, holderOf } = await open(false)
  const wrong = await requestWith('Bearer wrong')
  for (let time = 0; time < 50; time++) expect(holderOf(wrong).hasKey()).toBe(false)
  expect(access.judge(wrong)?.status).toBe(401)
})
