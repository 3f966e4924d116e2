import { request, type IncomingMessage } from 'node:http'
import { once } from 'node:events'
import { HOUR_MS } from '../../../src/base/time.ts'
import { afterEach, expect, onTestFinished } from 'vitest'
import { longTest, test } from '../../support/tables.ts'
import { createFindingsFeed } from '../../../src/features/findings/feed.ts'
import { beginFindings, logFindings } from '../../features/relay/findings-log.ts'
import { TEST_KEY, bearer } from '../../support/keys.ts'
import { FEEDS, FILLED_AT, type Served, type ServedOptions, closeAll, serve } from '../served.ts'

afterEach(closeAll)

/** A server of a folder whose tags are judged, and what logs a further change. */
async function start(
  options: Pick<ServedOptions, 'env' | 'now'> = {},
): Promise<Served & { log: string; change: (tags: string[]) => void }> {
  let feed: ReturnType<typeof createFindingsFeed> | null = null
  let log = ''
  const fill = (store: Served['store']): void => {
    store.publishFeeds(FEEDS)
    if (options.now !== undefined) store.publishOsv({})
  }
  const served = await serve(fill, {
    ...options,
    env: { PATCHMIRROR_SERVER_KEYS: TEST_KEY, ...options.env },
    findingsLog(config) {
      log = beginFindings(config.data.dir)
      return (feed = createFindingsFeed(config))
    },
  })
  const change = (tags: string[]): void => {
    logFindings(served.dir, 's1', tags)
    feed?.judged()
    served.server.snapshotChanged()
  }
  return { ...served, log, change }
}

/** Follows the events; resolves with the text of the stream up to an end. */
async function follow({ port }: Served, headers: Record<string, string>) {
  const sent = request({ port, host: '127.0.0.1', path: '/-/events', headers, agent: false })
  sent.end()
  onTestFinished(() => void sent.destroy())
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  let text = ''
  response.on('data', (chunk: Buffer) => (text += chunk.toString())).on('error', () => undefined)
  return { text: () => text, leave: () => void sent.destroy() }
}

const dataOf = (text: string): unknown[] =>
  [...text.matchAll(/event: findings\nid: .*\ndata: (.*)\n/g)].map(([, data = '']) => JSON.parse(data) as unknown)

test('a client with a key gets one event with the position and sums when findings changed, one without gets none', async () => {
  const served = await start()
  const keyed = await follow(served, bearer())
  const open = await follow(served, {})
  await expect.poll(keyed.text).toContain(`id: 1.0.${served.log}-0\n`)
  await expect.poll(open.text).toContain('id: 1\n')
  served.change(['a', 'b'])
  const none = { newFindings: 0, newFixable: 0, goneFindings: 0, goneFixable: 0, goneFixes: 0 }
  const counts = { tags: 2, newFixes: 2, ...none }
  const span = { after: `${served.log}-0`, position: `${served.log}-2` }
  await expect.poll(() => dataOf(keyed.text())).toEqual([{ ...span, complete: true, counts }])
  expect(keyed.text()).toContain(`id: 1.0.${served.log}-2\n`)
  served.store.publishFeeds({ ...FEEDS, '/external/cve_feed': '[]' })
  served.server.snapshotChanged()
  await expect.poll(open.text).toContain('event: snapshot\nid: 2\n')
  expect(open.text()).not.toContain('findings')
  await expect.poll(keyed.text).toContain(`event: snapshot\nid: 2.0.${served.log}-2\n`)
})

test('changes of findings are announced when they are served again, and none is lost', async () => {
  let now = FILLED_AT
  const env = { PATCHMIRROR_SERVER_STALE_ACTION: 'osv=refuse', PATCHMIRROR_SYNC_MAX_AGE_HOURS: 'osv=1' }
  const served = await start({ env, now: () => now })
  const { log } = served
  const before = await follow(served, bearer())
  await expect.poll(before.text).toContain(`id: 2.0.${log}-0\n`)
  now += 2 * HOUR_MS
  served.change(['a'])
  const meanwhile = await follow(served, bearer())
  await expect.poll(meanwhile.text).toContain(`id: 2.0.${log}-1\n`)
  served.change(['b'])
  served.store.publishFeeds({ ...FEEDS, '/external/cve_feed': '[]' })
  served.server.snapshotChanged()
  for (const [reader, place] of [
    [before, 0],
    [meanwhile, 1],
  ] as const)
    await expect.poll(reader.text).toContain(`event: snapshot\nid: 3.0.${log}-${place}\n`)
  expect([before, meanwhile].flatMap((reader) => dataOf(reader.text()))).toEqual([])
  served.store.publishOsv({ a: '{}' }, now)
  served.server.snapshotChanged()
  for (const [reader, tags] of [
    [before, 2],
    [meanwhile, 1],
  ] as const)
    await expect.poll(() => dataOf(reader.text())).toMatchObject([{ counts: { tags }, complete: true }])
})

longTest(
  'a client that was away gets all changes of findings as one event, and goes on in the log of another mirror',
  async () => {
    const served = await start()
    const { log } = served
    served.change(['a'])
    served.change(['a', 'b'])
    const away = async (id: string) => {
      const reader = await follow(served, { ...bearer(), 'Last-Event-ID': id })
      await expect.poll(reader.text).toContain('retry:')
      served.store.publishFeeds({ ...FEEDS, '/external/cve_feed': `["${id}"]` })
      served.server.snapshotChanged()
      await expect.poll(reader.text).toMatch(/event: snapshot\nid: \d+\.0\.[^\n]*-3\n/)
      reader.leave()
      expect(reader.text()).not.toContain('reset')
      return dataOf(reader.text())
    }
    expect(await away(`1.0.${log}-1`)).toMatchObject([
      { after: `${log}-1`, position: `${log}-3`, complete: true, counts: { tags: 2, newFixes: 2 } },
    ])
    expect(await away('1.0.00000000-7')).toMatchObject([{ position: `${log}-3`, complete: false, counts: null }])
    expect(await away(`1.0.${log}-3`)).toEqual([])
    expect(await away('1.0')).toEqual([])
  },
)
