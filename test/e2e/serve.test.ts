import { generateKeyPairSync } from 'node:crypto'
import { cpSync, existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect } from 'vitest'
import { type World, openWorld } from '../support/daemons.ts'
import { run } from '../support/command.ts'
import { commandHost } from '../support/hosted.ts'
import { longTest, test } from '../support/tables.ts'

interface StatusBody {
  sources: { name: string; nextRunAt: string }[]
  problems: { code: string; text: string }[]
}

const NO_MEMORY = fileURLToPath(new URL('../support/no-memory.ts', import.meta.url))

const command = commandHost()
let world: World

beforeEach(async () => {
  world = await openWorld({ records: 80, service: false }, undefined, command)
})

afterEach(() => world.close())

describe('patchmirror serve', () => {
  test('syncs at start, answers health, refuses a second daemon on its folder, and exits 0 on SIGTERM', async () => {
    const daemon = await world.serve()
    await daemon.said(/osv sync: complete/)
    expect((await fetch(`${daemon.url}/external/osv/all.json`)).status).toBe(200)
    const second = await world.patchmirror('serve')
    expect(second.code).toBe(2)
    expect(second.err).toContain(`process ${daemon.child.pid}`)

    const copy = join(world.dir, 'copy')
    cpSync(world.data, copy, { recursive: true })
    const at = { ...world.env, PATCHMIRROR_SERVER_LISTEN: new URL(daemon.url).host }
    const health = await command(['status', '--live'], at, world.dir)
    expect([health.code, health.out]).toEqual([
      0,
      expect.stringMatching(/^healthy: the daemon on http:\S+ answers; [^\n]*\n$/),
    ])
    const asJson = await command(['status', '--live', '--json'], at, world.dir)
    expect([asJson.code, JSON.parse(asJson.out)]).toEqual([0, { status: 'ok' }])
    const ready = await command(['status', '--ready'], at, world.dir)
    expect([ready.code, ready.out]).toEqual([
      0,
      expect.stringMatching(/^ready: feeds: as of [^\n]*; osv: as of [^\n]*, within sync\.maxAgeHours[^\n]*\n$/),
    ])
    const own = await command(['status'], at, world.dir)
    expect(own.out).not.toContain('data folder')
    const copied = await command(['status'], { ...at, PATCHMIRROR_DATA_DIR: copy }, world.dir)
    expect(copied.out).toContain('the mirror of another data folder answers')
    expect((await fetch(`${daemon.url}/-/health`)).status).toBe(200)

    daemon.child.kill('SIGTERM')
    const { code, signal, err } = await daemon.finished
    expect({ code, signal, err }).toMatchObject({ code: 0, signal: null })
    expect(err).toContain('"msg":"stopped"')
    expect(await command(['status', '--live'], at, world.dir)).toMatchObject({ code: 1 })
  })

  longTest('does not say of a daemon that hangs that none runs, or that it read its settings', async () => {
    const daemon = await world.serve()
    const env = { ...world.env, PATCHMIRROR_SERVER_LISTEN: new URL(daemon.url).host }
    daemon.child.kill('SIGSTOP')
    const said = (...args: string[]) => run(args, env, world.dir)
    const [live, reload] = await Promise.all([said('status', '--live'), said('config', '--reload')])
    daemon.child.kill('SIGCONT')
    expect(live).toMatchObject({
      code: 1,
      out: expect.stringContaining('One runs: "patchmirror doctor" says why') as string,
    })
    expect(reload).toMatchObject({ code: 3, out: expect.stringContaining('did not say that it read') as string })
  })

  longTest('serves what a sync from the command line has published as soon as the command returns', async () => {
    const daemon = await world.host()
    await daemon.said(/osv sync: complete/)
    const ask = (): Promise<Response> => fetch(`${daemon.url}/external/osv/all.json`)
    const before = await (await ask()).text()
    world.sandbox.feed.add(5)
    const synced = await world.patchmirror('sync', 'osv', '--json')
    expect([synced.code, synced.err]).toEqual([0, ''])
    const [report] = JSON.parse(synced.out) as { snapshot: string; startedAt: string }[]
    expect(report?.startedAt).toMatch(/^\d{4}-\d\d-\d\dT/)
    // The command returned: the daemon serves what it published.
    const now = await ask()
    expect(now.headers.get('x-mirror-snapshot')).toContain(report?.snapshot.slice(0, 12))
    await expect.poll(async () => (await ask()).text()).not.toBe(before)
    expect(await (await ask()).text()).toBe(world.sandbox.feed.index().toString())
  })

  longTest('starts again after it was killed, and reports the lost run', async () => {
    world.sandbox.faults.set('/external/osv/all.zip', { kind: 'slow', bytesPerSecond: 20_000 })
    const daemon = await world.serve()
    await expect.poll(() => world.sandbox.requests.count('/external/osv/all.zip')).toBe(1)
    daemon.child.kill('SIGKILL')
    await daemon.finished
    world.sandbox.faults.clear()
    const again = await world.host()
    await again.said(/osv sync: complete/)
    const { out } = await world.patchmirror('runs')
    expect(out).toContain('the process or its sync thread ended before the run did')
  })

  longTest('serves, and asks for nothing at its start, after two runs that ended with their process', async () => {
    world.sandbox.faults.set('/external/osv/all.zip', { kind: 'slow', bytesPerSecond: 20_000 })
    const asked = (): number => world.sandbox.requests.count('/external/osv/all.zip')
    for (const times of [1, 2]) {
      const daemon = await world.serve()
      await expect.poll(asked).toBe(times)
      daemon.child.kill('SIGKILL')
      await daemon.finished
    }
    world.sandbox.faults.clear()
    const third = await world.serve()
    await third.said(/osv: no run at this start: its last 2 runs ended with the process or its sync thread/)
    expect(asked()).toBe(2)
    expect((await world.patchmirror('sync', 'osv')).code).toBe(0)
    expect((await fetch(`${third.url}/external/osv/all.json`)).status).toBe(200)
  })

  longTest('goes on without a sync thread that ran out of memory, and names the run that was lost', async () => {
    world.sandbox.faults.set('/external/osv/all.zip', { kind: 'slow', bytesPerSecond: 20_000 })
    const daemon = await world.serve({ NODE_OPTIONS: `--import ${NO_MEMORY}` })
    await daemon.said(/the sync thread ended: .*out of memory\. These runs ended with it: osv sync.* again/)
    expect((await fetch(`${daemon.url}/-/health`)).status).toBe(200)
    const lost = 'the process or its sync thread ended before the run did'
    await expect.poll(async () => (await world.patchmirror('runs')).out).toContain(lost)
    expect(world.sandbox.requests.count('/external/osv/all.zip')).toBeLessThanOrEqual(1)
  })

  longTest('says in one line of health --ready what is not ready and what to do, and the same as JSON', async () => {
    const daemon = await world.host({ PATCHMIRROR_UPSTREAM_API_ROOT: 'http://127.0.0.1:9' })
    await daemon.said(/osv sync: failed/)
    const at = { ...world.env, PATCHMIRROR_SERVER_LISTEN: new URL(daemon.url).host }
    const { code, out } = await command(['status', '--ready'], at, world.dir)
    expect([code, out]).toEqual([
      1,
      expect.stringMatching(/^not ready: [^\n]*osv: nothing mirrored yet[^\n]*"patchmirror doctor" what to do\n$/),
    ])
    const asJson = await command(['status', '--ready', '--json'], at, world.dir)
    expect([asJson.code, JSON.parse(asJson.out)]).toEqual([1, expect.objectContaining({ ready: false })])
  })

  longTest('makes a derived archive that is missing again, the same to the byte', async () => {
    expect((await world.patchmirror('sync')).code).toBe(0)
    const derived = join(world.data, 'derived')
    const [file = ''] = readdirSync(derived).filter((name) => name.endsWith('.zip'))
    const bytes = readFileSync(join(derived, file))
    rmSync(join(derived, file))
    // No sync of its own makes it: upstream is not there.
    const daemon = await world.host({ PATCHMIRROR_UPSTREAM_API_ROOT: 'http://127.0.0.1:9' })
    const ask = () => fetch(`${daemon.url}/external/osv/all.zip`)
    await expect.poll(async () => (await ask()).status).toBe(200)
    expect(Buffer.from(await (await ask()).arrayBuffer()).equals(bytes)).toBe(true)
  })

  longTest(
    'serves without the key that signs bundles when its file is lost, exports nothing, and says so',
    async () => {
      expect((await world.patchmirror('sync')).code).toBe(0)
      const outbox = join(world.dir, 'outbox')
      const key = join(world.dir, 'bundle.key')
      const lost = { PATCHMIRROR_BUNDLE_SIGNING_KEYS: key, PATCHMIRROR_BUNDLE_OUTBOX: outbox }
      const daemon = await world.serve(lost)
      await daemon.said(/bundle\.signingKeys .*cannot be read.* not exported until that is solved/)
      expect((await fetch(`${daemon.url}/external/osv/all.json`)).status).toBe(200)
      await daemon.said(/the export to the outbox failed: bundle\.signingKeys could not be read at the start/)
      const status = await command(['status'], { ...world.env, ...lost }, world.dir)
      expect(status.out).toMatch(
        /PROBLEM: Bundle outbox: config\n\s+bundle\.signingKeys could not be read at the start/,
      )
      expect(existsSync(outbox)).toBe(false)
      daemon.child.kill('SIGTERM')
      expect((await daemon.finished).code).toBe(0)
      expect((await world.patchmirror('bundle', 'keygen', key)).code).toBe(0)
      const again = await world.host(lost)
      await expect
        .poll(() => (existsSync(outbox) ? readdirSync(outbox) : []))
        .toContainEqual(expect.stringMatching(/-full\./))
      expect((await fetch(`${again.url}/-/ready`)).status).toBe(200)
      const fleet = {
        ...lost,
        PATCHMIRROR_BUNDLE_SIGNING_KEYS: join(world.dir, 'none'),
        PATCHMIRROR_FLEET_URL: `file://${world.dir}`,
      }
      expect(await command(['serve'], { ...world.env, ...fleet }, world.dir)).toMatchObject({ code: 2 })
    },
  )

  longTest(
    'reloads its files on SIGHUP, logs which settings need a restart, and survives a closed output',
    async () => {
      const keyFile = join(world.dir, 'keys')
      writeFileSync(keyFile, 'Xq7-first-of-the-keys-92\n')
      const bundleKey = join(world.dir, 'bundle.pub')
      const publicPem = (): string =>
        generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' }).toString()
      writeFileSync(bundleKey, publicPem())
      const settingsFile = join(world.dir, 'settings.yaml')
      writeFileSync(settingsFile, 'sync: { maxAgeHours: 30 }\nlog: { level: debug }\n')
      const sent = join(world.dir, 'sent')
      const notify = join(world.dir, 'systemd-notify')
      writeFileSync(notify, `#!/bin/sh\necho "$1" >> '${sent}'\n`, { mode: 0o755 })
      const more = {
        NOTIFY_SOCKET: '/run/notify',
        PATH: [world.dir, process.env['PATH']].join(delimiter),
        PATCHMIRROR_SERVER_KEYS_FILE: keyFile,
        PATCHMIRROR_CONFIG: settingsFile,
        PATCHMIRROR_BUNDLE_TRUSTED_KEYS: bundleKey,
      }
      const daemon = await world.serve(more)
      const status = async (key: string) =>
        (await fetch(`${daemon.url}/v1/tags/`, { headers: { authorization: `Bearer ${key}` } })).status
      const nextRunAt = async (): Promise<string> => {
        const { sources } = (await (await fetch(`${daemon.url}/-/status`)).json()) as StatusBody
        return sources.find(({ name }) => name === 'osv')?.nextRunAt ?? ''
      }
      expect(await status('Xq7-second-of-the-keys-93')).toBe(401)
      writeFileSync(keyFile, 'Xq7-second-of-the-keys-93\n')
      writeFileSync(
        settingsFile,
        "sync: { maxAgeHours: 40 }\nosv: { schedule: '5 5 5 5 *' }\nserver: { maxConnections: 17 }\nlog: { level: info }\n",
      )
      writeFileSync(bundleKey, publicPem())
      const inUse = async (): Promise<string> => {
        const { out } = await command(['doctor', '--json'], { ...world.env, ...more }, world.dir)
        const { checks } = JSON.parse(out) as { checks: { name: string; found: string }[] }
        return checks.find(({ name }) => name === 'settings-in-use')?.found ?? ''
      }
      expect(await inUse()).toMatch(
        /: osv\.schedule, server\.maxConnections, log\.level \(.*"patchmirror config --reload"\); sync\.maxAgeHours, bundle\.trustedKeys \(.*restart\)$/,
      )
      const asked = await command(['config', '--reload'], { ...world.env, ...more }, world.dir)
      expect(asked.code).toBe(0)
      expect(asked.out).toContain(
        `process ${daemon.child.pid} has read its settings and files again\n` +
          'in force now: osv.schedule, server.keys, server.maxConnections, log.level\n' +
          'changed, and in force only after a restart: sync.maxAgeHours, bundle.trustedKeys; restart the daemon',
      )
      expect(await inUse()).toMatch(/: sync\.maxAgeHours, bundle\.trustedKeys \(in force only after a restart\)$/)
      const said = await daemon.said(/SIGHUP: /)
      expect(said).toMatch(
        /in force: osv\.schedule, server\.keys, server\.maxConnections, log\.level;.*after a restart: sync\.maxAgeHours, bundle\.trustedKeys/,
      )
      await expect.poll(nextRunAt).toMatch(/-05-05T/) // the report is made once a second
      expect(said).not.toContain('Xq7-')
      const beside = async (env: Record<string, string>) => {
        const args = ['sync', 'osv', '--dry-run']
        return (await command(args, { ...world.env, ...more, ...env }, world.dir)).err
      }
      const other = { PATCHMIRROR_OSV_SCOPE: 'GHSA-*' }
      const undone = 'the running daemon has another osv.scope: its next run undoes'
      await expect.poll(() => beside(other)).toContain(undone)
      await expect.poll(() => beside({})).not.toMatch(/the running daemon has another|is writing to this data folder/)
      expect(await status('Xq7-second-of-the-keys-93')).not.toBe(401)
      expect(await status('Xq7-first-of-the-keys-92')).toBe(401)
      const secretFaults = async (): Promise<unknown> => {
        const { problems } = (await (await fetch(`${daemon.url}/-/status`)).json()) as StatusBody
        return problems.flatMap(({ code, text }) => (code === 'secret_file' ? [text] : []))
      }
      expect(await secretFaults()).toEqual([])
      writeFileSync(keyFile, '\n')
      await expect.poll(secretFaults).toEqual(['the file of server.keys cannot be used'])
      expect(await status('Xq7-second-of-the-keys-93')).not.toBe(401)
      writeFileSync(keyFile, 'Xq7-second-of-the-keys-93\n')
      await expect.poll(secretFaults).toEqual([])
      // Neither is applied: not the sound one either.
      writeFileSync(settingsFile, "sync: { maxAgeHours: many }\nosv: { schedule: '6 6 6 6 *' }\n")
      const refused = await command(['config', '--reload'], { ...world.env, ...more }, world.dir)
      expect([refused.code, refused.err]).toEqual([2, expect.stringContaining('sync.maxAgeHours')])
      daemon.child.kill('SIGHUP')
      await daemon.said(/SIGHUP: the settings cannot be used[^"]*sync\.maxAgeHours/)
      // The daemon reads its own settings, which may be others than those of the command.
      const own = await command(['config', '--reload'], { ...world.env, ...more, PATCHMIRROR_CONFIG: '' }, world.dir)
      expect([own.code, own.err]).toEqual([2, expect.stringMatching(/process \d+ cannot use.*sync\.maxAgeHours/s)])
      const json = readFileSync(join(world.data, 'serve.settings'), 'utf8')
      expect(json).not.toMatch(/Xq7-|maxAgeHours":"?30[",]/)
      expect(await nextRunAt()).toMatch(/-05-05T/)
      expect((await fetch(`${daemon.url}/-/health`)).status).toBe(200)
      writeFileSync(settingsFile, 'sync: { maxAgeHours: 30 }\nlog: { level: info }\n')
      const back = await command(['config', '--reload', '--json'], { ...world.env, ...more }, world.dir)
      expect(JSON.parse(back.out)).toEqual({
        signalled: daemon.child.pid,
        inForce: ['osv.schedule', 'server.maxConnections'],
        restart: ['bundle.trustedKeys'],
        next: 'restart the daemon',
      })

      daemon.child.stderr?.destroy()
      daemon.child.stdout?.destroy()
      for (let n = 0; n < 3; n++) {
        daemon.child.kill('SIGHUP') // each writes lines that nobody can read
        expect((await fetch(`${daemon.url}/-/status`)).status).toBe(200)
      }
      daemon.child.kill('SIGTERM')
      expect((await daemon.finished).code).toBe(0)
      const messages = readFileSync(sent, 'utf8').split('\n')
      expect(messages.slice(0, 3)).toEqual(['READY=1', 'RELOADING=1', 'READY=1'])
      expect(messages.at(-2)).toBe('STOPPING=1')
    },
  )
})
