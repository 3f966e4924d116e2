import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { VERSION } from '../../src/base/version.ts'
import { findTool, runTool } from '../support/tools.ts'

/* The npm package, installed into an empty folder as on a machine without the sources. */

const NPM = findTool('npm') ?? 'npm'
const NPX = findTool('npx') ?? 'npx'
const MANDOC = findTool('mandoc')
const dir = mkdtempSync(join(tmpdir(), 'patchmirror-package-'))
const home = join(dir, 'home')
const env = { PATCHMIRROR_DATA_DIR: join(dir, 'data') }
let daemon: ChildProcess | null = null

/** Longest time of an installation, milliseconds. */
const PATIENCE_MS = 240_000
const inHome = (command: string, args: readonly string[]) =>
  runTool(command, args, { cwd: home, env, timeoutMs: PATIENCE_MS })
const npx = (...args: string[]) => inHome(NPX, ['--no-install', 'patchmirror', ...args])

beforeAll(async () => {
  mkdirSync(home)
  writeFileSync(join(home, 'package.json'), '{"private":true}\n')
  for (const args of [
    ['run', 'build'],
    ['pack', '--pack-destination', dir],
  ]) {
    const ran = await runTool(NPM, args, { timeoutMs: PATIENCE_MS })
    expect(ran.code, ran.out + ran.err).toBe(0)
  }
  const file = readdirSync(dir).find((name) => name.endsWith('.tgz')) ?? ''
  const ran = await inHome(NPM, ['install', '--no-audit', '--no-fund', join(dir, file)])
  expect(ran.code, ran.out + ran.err).toBe(0)
})

afterAll(async () => {
  if (daemon !== null && daemon.exitCode === null) {
    const ended = new Promise((resolve) => daemon?.once('exit', resolve))
    daemon.kill('SIGTERM')
    await ended
  }
  rmSync(dir, { recursive: true, force: true })
})

test('the package runs with npx, checks settings and has its manual page', async () => {
  expect(await npx('--version')).toMatchObject({ code: 0, out: `${VERSION}\n` })
  const settings = join(dir, 'settings.yaml')
  writeFileSync(settings, 'server: { listen: 127.0.0.1:0 }\n')
  const checked = await npx('config', '--check', settings)
  expect(checked.code, checked.err).toBe(0)
  const page = join(home, 'node_modules/patchmirror/deploy/man/patchmirror.1')
  const shown = await inHome(findTool('man') ?? 'cat', findTool('man') ? ['-l', page] : [page])
  expect(shown.out).toMatch(/NAME\s+patchmirror/)
})

test('the manual page has no problem but its missing date (needs mandoc)', async (context) => {
  if (MANDOC === null) return context.skip('mandoc is not installed')
  const { out } = await runTool(MANDOC, ['-Tlint', '-W', 'style', 'deploy/man/patchmirror.1'])
  expect(out.split('\n').filter((line) => line !== '' && !line.includes('missing date'))).toEqual([])
})

test('the installed package serves offline, with the bill of materials of its libraries', async () => {
  const bin = join(home, 'node_modules/.bin/patchmirror')
  daemon = spawn(bin, ['serve', '--offline'], {
    cwd: home,
    env: { ...process.env, ...env, PATCHMIRROR_SERVER_LISTEN: '127.0.0.1:0', PATCHMIRROR_LOG_FORMAT: 'json' },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let log = ''
  daemon.stderr?.on('data', (chunk: Buffer) => (log += chunk.toString()))
  await expect.poll(() => /http:\/\/[\d.]+:\d+/.exec(log)?.[0]).toBeDefined()
  const url = /http:\/\/[\d.]+:\d+/.exec(log)?.[0] ?? ''
  expect((await fetch(`${url}/-/health`)).status).toBe(200)
  const answer = await fetch(`${url}/-/sbom`)
  const { metadata, components } = (await answer.json()) as {
    metadata: { component: object }
    components: { name: string }[]
  }
  expect(metadata.component).toMatchObject({ name: 'patchmirror', version: VERSION })
  const names = components.map(({ name }) => name)
  expect(names).toEqual(expect.arrayContaining(['better-sqlite3', 'undici', 'fastify']))
  expect(names).not.toContain('vitest')
})
