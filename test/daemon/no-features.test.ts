import { expect, onTestFinished } from 'vitest'
import { pino } from 'pino'
import { createProgram } from '../../src/cli/program.ts'
import { verbsOf } from '../../src/cli/verbs.ts'
import { loadQuick } from '../support/limits.ts'
import { createAgent } from '../../src/daemon/agent.ts'
import { FEATURES } from '../../src/features.ts'
import type { Run } from '../../src/store/runs/runs.ts'
import { catalogEnv } from '../support/catalog/mirror.ts'
import { openWorld } from '../support/daemons.ts'
import { TEST_KEY, bearer } from '../support/keys.ts'
import { EVENT, SECRET, signed } from '../webhooks/signing.ts'
import { seconds } from '../webhooks/daemons.ts'
import { longTest, test } from '../support/tables.ts'

longTest('a program without any feature starts, mirrors, serves, and receives webhooks', async () => {
  const world = await openWorld({ records: 3, large: 0, service: { images: 1, tags: 1 } }, catalogEnv)
  onTestFinished(() => world.close())
  const env = { ...world.env, PATCHMIRROR_SERVER_KEYS: TEST_KEY, PATCHMIRROR_WEBHOOKS_SECRETS: SECRET }
  const { config } = loadQuick({ env, cwd: world.dir })
  const ended: Run[] = []
  const agent = createAgent({
    config,
    features: [],
    version: 'test',
    log: pino({ level: 'silent' }),
    onEnded: (report) => void ended.push(report),
  })
  onTestFinished(() => agent.close())
  const { url } = await agent.start()
  const isWhole = (source: string): boolean => ended.some((run) => run.source === source && run.state === 'complete')
  await expect.poll(() => ['osv', 'feeds', 'catalog'].every(isWhole)).toBe(true)

  for (const path of ['/external/osv/all.json', '/external/patch_feed', '/v1/tags/']) {
    const answer = await fetch(url + path, { headers: bearer() })
    expect([path, answer.status]).toEqual([path, 200])
  }
  expect((await fetch(`${url}/-/status`)).status).toBe(200)
  expect((await fetch(`${url}/-/ui/`)).status).toBe(404)
  const listed = (await (await fetch(url)).json()) as { readonly mirrored: string[]; readonly own: string[] }
  const named = [...listed.mirrored, ...listed.own]
  expect(named).toEqual(expect.arrayContaining(['/external/osv/{id}.json', '/-/status', '/-/sbom']))
  expect(named.filter((path) => /^\/osv|match/.test(path))).toEqual([])

  const body = JSON.stringify(EVENT)
  const headers = { 'content-type': 'application/json', ...signed({ timestamp: seconds(), body }) }
  expect((await fetch(`${url}/-/webhooks`, { method: 'POST', headers, body })).status).toBe(202)
  await expect.poll(() => ended.some((run) => run.kind === 'refresh')).toBe(true)
})

test('the commands of a feature come and go with it', () => {
  const named = (features: typeof FEATURES): string[] =>
    verbsOf(features)
      .filter(({ load }) => load !== undefined)
      .map(({ path }) => path)
  expect(named([])).toEqual(expect.arrayContaining(['serve', 'sync', 'status', 'keys list', 'webhooks inbox']))
  expect(createProgram([]).commands.map((one) => one.name())).toContain('doctor') // with --data
  expect(named([])).not.toContain('bundle export')
  for (const feature of FEATURES) {
    const others = named(FEATURES.filter((one) => one !== feature))
    const own = Object.values(feature.verbs ?? {}).flatMap((verbs) => verbs.filter(({ load }) => load !== undefined))
    const names = own.map(({ path }) => path)
    expect([feature.name, names.filter((name) => others.includes(name))]).toEqual([feature.name, []])
  }
})
