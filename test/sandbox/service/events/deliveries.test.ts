import { createHmac } from 'node:crypto'
import { describe, expect } from 'vitest'
import { type Dialect, DIALECTS } from './dialect.ts'
import { asAdmin, ask } from '../asking.ts'
import { type Received, SECRET, delivering, endpoint, subscribe } from '../webhook-endpoints.ts'
import { bothTest, telling, test } from '../../../support/tables.ts'

const idOf = ({ headers }: Received): string => String(headers['webhook-id'])
const timeOf = ({ headers }: Received): number => Number(headers['webhook-timestamp'])

/** What a delivery must be signed with, worked out apart from the sandbox. */
function signed(dialect: Dialect, one: Received): string {
  const whole = Buffer.from(SECRET)
  const decoded = Buffer.alloc(24, 7)
  const [key, encoding] = {
    standard: [decoded, 'base64'] as const,
    vendor: [whole, 'hex'] as const,
    'whole-base64': [whole, 'base64'] as const,
    'decoded-hex': [decoded, 'hex'] as const,
  }[dialect]
  const content = `${idOf(one)}.${timeOf(one)}.${one.body}`
  return `v1,${createHmac('sha256', key).update(content).digest(encoding)}`
}

describe('a new tag', () => {
  test.each(DIALECTS)('is delivered to its subscribers, signed (%s)', async (dialect) => {
    const sandbox = await delivering({ dialect })
    const { url, received } = await endpoint()
    await subscribe(sandbox, url)
    await subscribe(sandbox, url, 'io.service.cr.other.v1')
    const tag = sandbox.service.addTag()
    await sandbox.service.deliveries.settled()
    const [one] = received as [Received]
    expect(received).toHaveLength(1)
    expect(one.headers['webhook-signature']).toBe(signed(dialect, one))
    const { name, digest, image } = sandbox.service.read('tags', tag)
    const { repository } = image as { repository: string }
    expect(JSON.parse(one.body)).toMatchObject({
      id: idOf(one),
      subject: `cr.example.com/${repository}:${String(name)}`,
      data: { image_repo: repository, image_tag: name, image_digest: digest },
    })
    expect(sandbox.service.deliveries.records).toMatchObject([
      { eventId: idOf(one), tagId: tag, attempt: 1, status: 'delivered', nextInMs: null },
    ])
  })

  test('is announced by the control command too, unless it is not remediated', async () => {
    const sandbox = await delivering({ tags: 35 })
    const { url, received } = await endpoint()
    await subscribe(sandbox, url)
    await ask(`${sandbox.url}/-/sandbox/add-tag?n=4`, { method: 'POST' })
    await sandbox.service.deliveries.settled()
    expect(received).toHaveLength(3) // the 38th is none
    const { bytes } = await ask(`${sandbox.url}/-/sandbox/deliveries`)
    expect(JSON.parse(bytes.toString())).toEqual(sandbox.service.deliveries.records)
  })
})

describe('a failing endpoint', () => {
  const FAILURES: Record<string, Parameters<typeof endpoint>[0]> = {
    'answers 500': (response, n) => response.writeHead(n < 3 ? 500 : 202).end(),
    'answers 429': (response, n) => response.writeHead(n < 3 ? 429 : 202).end(),
    redirects: (response, n) => response.writeHead(n < 3 ? 302 : 202, { Location: '/' }).end(),
    resets: (response, n) => (n < 3 ? response.destroy() : response.end()),
    'does not answer': (response, n) => (n < 3 ? undefined : response.end()), // waits for two deadlines
  }
  const ROWS = Object.entries(FAILURES)
  bothTest.each(telling(ROWS, 'answers 500', 'redirects'))('that %s gets the delivery again', async (_name, answer) => {
    let now = Date.UTC(2026, 5, 1)
    const sandbox = await delivering({ deliveryTimeoutMs: 1000 }, { now: () => (now += 1000) })
    const { url, received } = await endpoint(answer)
    await subscribe(sandbox, url)
    sandbox.service.addTag()
    await sandbox.service.deliveries.settled()
    expect(received).toHaveLength(3)
    expect(new Set(received.map(idOf)).size).toBe(1)
    expect(new Set(received.map(({ body }) => body)).size).toBe(1)
    const times = received.map(timeOf)
    expect(times).toEqual([...new Set(times)].sort((a, b) => a - b))
    for (const one of received) expect(one.headers['webhook-signature']).toBe(signed('standard', one))
    const told = sandbox.service.deliveries.records.map(({ status, nextInMs }) => [status, nextInMs])
    expect(told).toEqual([
      ['failed', 1],
      ['failed', 1],
      ['delivered', null],
    ])
  })

  test('is given up after the last pause, at once for a 410, and when it is deleted', async () => {
    const sandbox = await delivering({ retryDelaysMs: [1, 1, 20] })
    const down = await endpoint((response) => response.writeHead(503).end())
    const gone = await endpoint((response) => response.writeHead(410).end())
    await subscribe(sandbox, down.url)
    await subscribe(sandbox, gone.url)
    const deleted = await endpoint((response, n) => {
      if (n < 2) return response.writeHead(503).end()
      const path = `/v3/settings/webhooks/${id}`
      return asAdmin(sandbox, path, { method: 'DELETE' }).then(() => response.writeHead(503).end())
    })
    const id = await subscribe(sandbox, deleted.url)
    sandbox.service.addTag()
    await sandbox.service.deliveries.settled()
    const counts = [down, gone, deleted].map(({ received }) => received.length)
    expect(counts).toEqual([4, 1, 2])
  })

  test('gets no delivery during its Retry-After', async () => {
    const sandbox = await delivering()
    const { url } = await endpoint((response) => response.writeHead(503, { 'Retry-After': '3600' }).end())
    await subscribe(sandbox, url)
    sandbox.service.addTag()
    const { records } = sandbox.service.deliveries
    await expect.poll(() => records.map(({ nextInMs }) => nextInMs)).toEqual([3_600_000])
  })

  test('does not keep the sandbox from closing', async () => {
    const sandbox = await delivering({ deliveryTimeoutMs: 60_000, retryDelaysMs: [60_000] })
    const silent = await endpoint(() => undefined)
    const down = await endpoint((response) => response.writeHead(503).end())
    await subscribe(sandbox, silent.url)
    await subscribe(sandbox, down.url)
    sandbox.service.addTag()
    await expect.poll(() => silent.received.length + down.received.length).toBe(2)
    await sandbox.close()
    expect(sandbox.service.deliveries.records.map(({ attempt }) => attempt)).toEqual([1, 1])
  })
})

describe('a delivery with a fault', () => {
  async function disturbed(service = {}) {
    const sandbox = await delivering(service)
    const { url, received } = await endpoint((response, n) =>
      response.writeHead(n === 1 && isFirstRefused ? 401 : 202).end(),
    )
    let isFirstRefused = false
    await subscribe(sandbox, url)
    const refuseFirst = (): void => void (isFirstRefused = true)
    return { sandbox, received, refuseFirst, ...sandbox.service.deliveries }
  }

  test('is not sent', async () => {
    const { sandbox, received, faults, records, settled } = await disturbed()
    faults.set({ kind: 'lost' }, { after: 1 })
    for (let i = 0; i < 3; i++) sandbox.service.addTag()
    await settled()
    expect(received).toHaveLength(2)
    expect(records.filter(({ status }) => status === 'lost')).toMatchObject([{ attempt: 0 }])
  })

  test('is sent twice, under one id', async () => {
    const { sandbox, received, faults, settled } = await disturbed()
    faults.set({ kind: 'doubled', times: 3 })
    sandbox.service.addTag()
    await settled()
    expect([received.length, new Set(received.map(idOf)).size]).toEqual([3, 1])
  })

  test('is sent late, or after the next one', async () => {
    const { sandbox, received, faults, records, settled } = await disturbed()
    faults.set({ kind: 'delayed', ms: 50 })
    const tags = [sandbox.service.addTag(), sandbox.service.addTag()]
    await settled()
    expect(records.map(({ tagId }) => tagId)).toEqual([...tags].reverse())
    faults.set({ kind: 'reordered' })
    const more = [sandbox.service.addTag(), sandbox.service.addTag()]
    await settled()
    expect(records.slice(2).map(({ tagId }) => tagId)).toEqual([...more].reverse())
    expect(received).toHaveLength(4)
  })

  test.each(['wrongSignature', 'oldTimestamp'] as const)('has a %s once', async (kind) => {
    const { sandbox, received, faults, settled, refuseFirst } = await disturbed()
    refuseFirst()
    faults.set({ kind })
    sandbox.service.addTag()
    await settled()
    const [first, second] = received as [Received, Received]
    expect(received).toHaveLength(2)
    expect(second.headers['webhook-signature']).toBe(signed('standard', second))
    const isRight = first.headers['webhook-signature'] === signed('standard', first)
    expect(isRight).toBe(kind === 'oldTimestamp')
    expect(timeOf(second) - timeOf(first) >= 600).toBe(kind === 'oldTimestamp')
  })

  test('is sent before its tag is listed', async () => {
    const { sandbox, received, faults, settled, reveal } = await disturbed()
    const isThere = async (tag: string): Promise<boolean> => {
      const list = await asAdmin(sandbox, '/v1/tags/?limit=1000')
      const { status } = await asAdmin(sandbox, `/v1/tags/${tag}`)
      expect(status).toBe(list.bytes.includes(tag) ? 200 : 404)
      return status === 200
    }
    faults.set({ kind: 'early' })
    const tag = sandbox.service.addTag()
    await settled()
    expect([received.length, await isThere(tag)]).toEqual([1, false])
    reveal()
    expect(await isThere(tag)).toBe(true)
    await ask(`${sandbox.url}/-/sandbox/delivery-fault`, {
      method: 'POST',
      body: { fault: { kind: 'early', ms: 5 } },
    })
    const other = sandbox.service.addTag()
    await expect.poll(() => isThere(other), { interval: 5 }).toBe(true)
  })
})

test('the control command refuses an unknown delivery fault', async () => {
  const sandbox = await delivering()
  const set = (body: unknown, method = 'POST') => ask(`${sandbox.url}/-/sandbox/delivery-fault`, { method, body })
  for (const body of [{}, [], { fault: { kind: 'no' } }, { fault: 'lost' }]) expect((await set(body)).status).toBe(400)
  expect((await set({ fault: { kind: 'lost' }, times: 2 })).status).toBe(200)
  expect((await set({}, 'DELETE')).status).toBe(200)
  expect((await ask(`${sandbox.url}/-/sandbox/delivery-fault`)).status).toBe(405)
})
