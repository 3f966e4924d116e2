import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { QUESTION, ask, canWeigh, headOf, sendUnread, startCrowded } from './crowds.ts'

const MIB = 2 ** 20
/** The account of bytes, 64 MiB; what crowds may add to what is kept, and with what is collected later. */
const ACCOUNT = 64 * MIB
const MOST_KEPT = 1.75 * ACCOUNT
const MOST_USED = 3 * ACCOUNT

test.runIf(canWeigh)(
  '400 clients that ask for large answers and read nothing cost no more than the account',
  async () => {
    const { port, watch } = await startCrowded()
    await ask(port, '/osv/v1/query', QUESTION)
    const before = await watch(1)
    const query = headOf('/osv/v1/query', QUESTION.length) + QUESTION
    for (let count = 0; count < 400; count++) await sendUnread(port, query, '127.0.0.2')
    const most = await watch(20)
    expect((await ask(port, '/osv/v1/query', '{"package":{"purl":"pkg:npm/small@1.0.0"}}')).status).toBe(200)
    expect(most.kept - before.kept).toBeLessThan(MOST_KEPT)
    expect(most.used - before.used).toBeLessThan(MOST_USED)
  },
)

test.runIf(canWeigh)('150 clients that hold back the end of a body cost no more than the account', async () => {
  const { port, watch } = await startCrowded()
  await ask(port, '/osv/v1/query', QUESTION)
  const before = await watch(1)
  const body = Buffer.concat([Buffer.from(headOf('/osv/v1/query', 4 * MIB)), Buffer.alloc(4 * MIB - 9, 32)])
  for (let count = 0; count < 150; count++) await sendUnread(port, body, '127.0.0.2')
  const most = await watch(15)
  expect((await ask(port, '/osv/v1/query', '{"package":{"purl":"pkg:npm/small@1.0.0"}}')).status).toBe(200)
  expect(most.kept - before.kept).toBeLessThan(MOST_KEPT)
  expect(most.used - before.used).toBeLessThan(MOST_USED)
})

test.each(['/-/match', '/osv/v1/query'])('4,200 heads without a body on %s shut nobody out', async (path) => {
  const { port } = await startCrowded()
  const small = '{"package":{"purl":"pkg:npm/small@1.0.0"}}'
  const head = headOf(path, 1000)
  // Of more addresses than one share allows: together they want all places, also those that the first of them lost.
  for (const count of [4200, 200, 200]) {
    for (let n = 0; n < count; n++) await sendUnread(port, head, `127.0.1.${n % 5}`)
    await sleep(1000)
  }
  for (let again = 0; again < 20; again++) {
    expect((await ask(port, '/osv/v1/query', small)).status).toBe(200)
    expect((await ask(port, '/-/status')).status).toBe(200)
  }
})

test.each(['127.0.0.2', '127.0.0.9'])('nine slow clients at %s leave /-/match to others', async (from) => {
  const { port } = await startCrowded()
  const components = [{ name: 'small', purl: 'pkg:npm/small@1.0.0' }]
  const sbom = JSON.stringify({ bomFormat: 'CycloneDX', specVersion: '1.6', components })
  expect((await ask(port, '/-/match', sbom)).status).toBe(200) // the thread is there
  const size = 16 * MIB - 1
  const begun = Buffer.concat([Buffer.from(headOf('/-/match', size)), Buffer.alloc(size - 9_000, 32)])
  const slow = await Promise.all(Array.from({ length: 9 }, () => sendUnread(port, begun, from)))
  const drip = setInterval(() => slow.forEach((socket) => socket.write('x')), 100)
  onTestFinished(() => clearInterval(drip))
  expect((await ask(port, '/-/match', sbom)).status).toBe(200) // a part is kept for it
  await sleep(8_000)
  const large = await ask(port, '/-/match', sbom.padEnd(12 * MIB))
  expect([large.status, large.body.includes('S-1')]).toEqual([200, true])
})

test('400 clients at one address that ask for large answers leave room for one at another', async () => {
  const { port } = await startCrowded()
  const query = headOf('/osv/v1/query', QUESTION.length) + QUESTION
  for (let count = 0; count < 400; count++) await sendUnread(port, query, '127.0.0.2')
  await sleep(5_000)
  const { status, body } = await ask(port, '/osv/v1/query', QUESTION)
  expect([status, JSON.parse(body)]).toMatchObject([200, { vulns: expect.any(Array) as unknown }])
})
