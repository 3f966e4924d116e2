import { createServer as createTcpServer } from 'node:net'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished } from 'vitest'
import { EDGE_TARGET } from '../../../src/base/reports/transfer.ts'
import { faultsBy } from '../../support/openapi.ts'
import { createEdgePurges } from '../../../src/features/edge/purge.ts'
import { openWorld } from '../../support/daemons.ts'
import { type Manner, target } from '../../features/relay/targets.ts'
import { longTest, test } from '../../support/tables.ts'

interface Line {
  fields: object
  text: string
}

/** Purges of these targets with short pauses; their log. */
function purges(urls: readonly string[], againMs = 3_600_000) {
  const lines: Line[] = []
  const add = (fields: object, text: string): void => void lines.push({ fields, text })
  const log = { debug: add, info: add, warn: add, error: add, isLevelEnabled: () => false }
  const config = { maxAgeSeconds: 60, tagHeader: 'xkey', purge: urls } as const
  const made = createEdgePurges({ config, ca: undefined, againMs, log, now: () => 0, retryMs: 1, timeoutMs: 500 })
  onTestFinished(made.close)
  return { ...made, lines }
}

const tagsOf = (got: readonly { headers: Record<string, unknown> }[]) => got.map(({ headers }) => headers['xkey'])

test('tags are purged at once and again later', async () => {
  const edge = await target(200)
  const { purge, status } = purges([edge.url], 20)
  purge(['pm-osv', 'pm-feeds'])
  await expect.poll(() => tagsOf(edge.got)).toEqual(['pm-osv pm-feeds', 'pm-osv pm-feeds'])
  await expect.poll(status).toMatchObject([{ state: 'ok', pending: false, purged: 2 }])
  expect(faultsBy(EDGE_TARGET, status()[0])).toEqual([])
})

test('a purge that fails is retried with all tags that came meanwhile, and logged once for each reason', async () => {
  const answers = [503, 503, 302, 404]
  const manner: Manner = (response) => void response.writeHead(answers.shift() ?? 200).end()
  const edge = await target(manner)
  const { purge, status, lines } = purges([edge.url])
  purge(['pm-osv'])
  purge(['pm-feeds'])
  await expect.poll(status).toMatchObject([{ state: 'ok', failures: 4, purgedAt: '1970-01-01T00:00:00.000Z' }])
  expect(tagsOf(edge.got).at(-1)).toContain('pm-feeds')
  const reasons = ['it answered 503', 'it answered 302', 'it answered 404', 'is purged again']
  expect(lines).toHaveLength(reasons.length)
  for (const [at, reason] of reasons.entries()) expect(lines[at]?.text).toContain(reason)
  expect(JSON.stringify(lines)).not.toContain('private')
})

longTest('a target that never answers, or answers without end, delays no other', async () => {
  const silent = createTcpServer(() => undefined)
  silent.listen(0, '127.0.0.1')
  await once(silent, 'listening')
  onTestFinished(() => void silent.close())
  const endless = await target((response) => {
    response.writeHead(200)
    const write = (): void => {
      if (!response.destroyed) response.write('x'.repeat(65_536), () => setImmediate(write))
    }
    write()
  })
  const sound = await target(204)
  const port = String((silent.address() as AddressInfo).port)
  const { purge, status } = purges([`http://127.0.0.1:${port}/`, endless.url, sound.url])
  purge(['pm-osv'])
  await expect.poll(() => status().map(({ purged }) => purged)).toEqual([0, 1, 1])
  await expect.poll(() => status()[0]).toMatchObject({ state: 'failing', reason: 'no answer within 500 ms' })
})

longTest('a daemon purges what it serves at the start and after each publication', async () => {
  const edge = await target(200)
  const world = await openWorld({ records: 5, large: 0, service: false })
  onTestFinished(() => world.close())
  const daemon = await world.host({
    PATCHMIRROR_EDGE_MAX_AGE_SECONDS: '60',
    PATCHMIRROR_EDGE_TAG_HEADER: 'xkey',
    PATCHMIRROR_EDGE_PURGE: edge.url,
  })
  const count = (tag: string) => tagsOf(edge.got).filter((tags) => String(tags).split(' ').includes(tag)).length
  await expect.poll(() => Math.min(count('pm-osv'), count('pm-feeds'))).toBeGreaterThan(0)
  const osv = count('pm-osv')
  world.sandbox.feed.change(1)
  daemon.agent.requestSync('osv', 'sync')
  await expect.poll(() => count('pm-osv')).toBe(osv + 1)
  const report = await (await fetch(`${daemon.url}/-/status`)).text()
  expect(JSON.parse(report)).toMatchObject({ edge: [{ id: 1, state: 'ok' }] })
  const metrics = await (await fetch(`${daemon.url}/-/metrics`)).text()
  expect(metrics).toContain('patchmirror_edge_failing{target="1"} 0')
  expect(report + metrics).not.toContain('private')
})
