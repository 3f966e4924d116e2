import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { parse } from 'yaml'
import { type World, openWorld } from '../support/daemons.ts'
import { freePort } from '../support/free-ports.ts'
import { hasOpenssl, makeTls } from '../support/tls.ts'
import { findTool, runTool, startTool } from '../support/tools.ts'

/* Prometheus: its linters over the metrics page and the alerts, and a server of its own that scrapes a daemon. */

const RULES = resolve('deploy/prometheus/patchmirror.rules.yml')
const PROMTOOL = findTool('promtool')
const PROMETHEUS = findTool('prometheus')

interface Rule {
  readonly alert: string
  readonly expr: string
  readonly annotations: Readonly<Record<string, string>>
}

const { groups } = parse(readFileSync(RULES, 'utf8')) as { groups: { rules: Rule[] }[] }
const rules = groups.flatMap((group) => group.rules)
const dir = mkdtempSync(join(tmpdir(), 'patchmirror-prometheus-'))
let world: World
let mirror: string

beforeAll(async () => {
  world = await openWorld({ records: 20 }, () => ({ LIMIT_SYNC_JITTER_SECONDS: '0' }))
  const daemon = await world.host()
  mirror = daemon.url
  // Outside of a test there is no expect.poll.
  await vi.waitFor(async () => expect(await states()).toContain('osv complete'), 170_000)
  for (const path of ['/external/osv/all.json', '/external/osv/none.json', '/-/status'])
    await (await fetch(mirror + path)).arrayBuffer()
})

afterAll(async () => {
  await world.close()
  rmSync(dir, { recursive: true, force: true })
})

async function metrics(): Promise<string> {
  return (await fetch(`${mirror}/-/metrics`)).text()
}

async function states(): Promise<string[]> {
  const shown = /^patchmirror_source_state\{source="(\w+)",state="(\w+)"\} 1$/gm
  return [...(await metrics()).matchAll(shown)].map(([, source, state]) => `${source} ${state}`)
}

describe('promtool', () => {
  test('finds nothing wrong with the metrics page', async (context) => {
    if (PROMTOOL === null) return context.skip('promtool is not installed')
    const page = join(dir, 'page.txt')
    writeFileSync(page, await metrics())
    const ran = await runTool('/bin/sh', ['-c', `"${PROMTOOL}" check metrics < "${page}"`])
    expect(ran.out + ran.err).toBe('')
    expect(ran.code).toBe(0)
  })

  test('accepts the alerts, and each fires when it should and only then', async (context) => {
    if (PROMTOOL === null) return context.skip('promtool is not installed')
    const checked = await runTool(PROMTOOL, ['check', 'rules', RULES])
    expect(checked.code, checked.err).toBe(0)
    expect(checked.out + checked.err).not.toContain('FAILED') // two alerts of one name
    const tests = ['.test.yml', '.days.test.yml'].map((ending) => RULES.replace('.yml', ending))
    const ran = await runTool(PROMTOOL, ['test', 'rules', ...tests], { timeoutMs: 580_000 })
    expect(ran.code, ran.out + ran.err).toBe(0)
    const proven = tests.map((path) => readFileSync(path, 'utf8')).join('')
    for (const { alert } of rules) expect(proven, alert).toContain(`alertname: ${alert}`)
  })
})

test('a Prometheus that scrapes the mirror answers every query of the dashboard and reads every metric of the alerts', async (context) => {
  if (PROMETHEUS === null) return context.skip('prometheus is not installed')
  const base = await scrape(PROMETHEUS)
  const query = async (expr: string): Promise<unknown[]> => {
    const answer = await fetch(`${base}/api/v1/query?query=${encodeURIComponent(expr)}`)
    const { data, error } = (await answer.json()) as { data?: { result: unknown[] }; error: string }
    if (data === undefined) throw new Error(`${expr}: ${error}`)
    return data.result
  }
  // A rate needs two scrapes of its metric, and some metrics are there only once the first scrape was answered.
  for (const expr of dashboardQueries()) await expect.poll(() => query(expr), { message: expr }).not.toEqual([])
  // Metrics of what this daemon does not have (webhooks, relay, bundles) are on the page by name only.
  const page = await metrics()
  for (const { alert, expr } of rules) {
    await query(expr)
    for (const [name] of expr.matchAll(/patchmirror_\w+/g)) expect(page, alert).toContain(`# TYPE ${name} `)
  }
})

test.skipIf(!hasOpenssl)(
  'the scrape over TLS of the guide is accepted, and reaches a mirror with a certificate of its own',
  async (context) => {
    if (PROMETHEUS === null || PROMTOOL === null) return context.skip('prometheus is not installed')
    const tls = makeTls(dir)
    const daemon = await world.host({
      PATCHMIRROR_SERVER_CERT_FILE: join(dir, 'cert.pem'),
      PATCHMIRROR_SERVER_KEY_FILE: join(dir, 'key.pem'),
      PATCHMIRROR_DATA_DIR: join(dir, 'mirror-over-tls'),
    })
    const token = join(dir, 'token')
    writeFileSync(token, 'of-a-proxy')
    const guide = readFileSync('docs/guides/monitoring.md', 'utf8')
    const block = /```yaml\n(scrape_configs:\n[^`]*scheme: https\n[^`]*)```/.exec(guide)?.[1] ?? ''
    const config = block
      .replace('/etc/prometheus/mirror-ca.pem', tls.caFile)
      .replace('/etc/prometheus/mirror-token', token)
      .replace('server_name: mirror.example.com', 'server_name: localhost')
      .replace('mirror.example.com:8443', new URL(daemon.url).host)
    const base = await startPrometheus(PROMETHEUS, 'tls', config)
    const target = async (): Promise<unknown> => {
      const { data } = (await (await fetch(`${base}/api/v1/targets`)).json()) as Targets
      return data.activeTargets.map(({ health, lastError }) => [health, lastError])
    }
    await expect.poll(target).toEqual([['up', '']])
  },
)

interface Targets {
  readonly data: {
    readonly activeTargets: { readonly health: string; readonly lastError: string }[]
  }
}

/** The expressions of the dashboard, for every instance. */
function dashboardQueries(): string[] {
  const board = JSON.parse(readFileSync('deploy/grafana/patchmirror.json', 'utf8')) as {
    panels: { targets: { expr: string }[] }[]
  }
  return board.panels
    .flatMap(({ targets }) => targets.map(({ expr }) => expr))
    .map((expr) => expr.replaceAll('$instance', '.*'))
}

/** Starts a Prometheus that scrapes the mirror each second; it ends with the test. */
async function scrape(command: string): Promise<string> {
  const target = JSON.stringify(new URL(mirror).host)
  const scrapes = `scrape_configs:
  - job_name: patchmirror
    metrics_path: /-/metrics
    static_configs: [{ targets: [${target}] }]
`
  return startPrometheus(command, 'plain', scrapes)
}

/** Starts a Prometheus with these scrapes, each second; it ends with the test. */
async function startPrometheus(command: string, name: string, scrapes: string): Promise<string> {
  const port = await freePort()
  const config = join(dir, `${name}.yml`)
  writeFileSync(config, `global: { scrape_interval: 1s, scrape_timeout: 1s }\n${scrapes}`)
  const server = startTool(command, [
    `--config.file=${config}`,
    `--storage.tsdb.path=${join(dir, `${name}-data`)}`,
    `--web.listen-address=127.0.0.1:${port}`,
  ])
  onTestFinished(() => server.stop())
  const base = `http://127.0.0.1:${port}`
  const isReady = async (): Promise<boolean> =>
    fetch(`${base}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    )
  await expect.poll(isReady, { message: server.said() }).toBe(true)
  return base
}
