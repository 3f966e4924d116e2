import { spawn, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { isPresent } from '../../../src/base/files.ts'
import { createSandbox } from '../../sandbox/server.ts'
import { openShortReads } from '../../../src/store/reads.ts'
import { MAIN } from '../../support/command.ts'
import { scratch } from '../../store/fixtures.ts'

const PATIENCE = { interval: 50 }

test('a sync whose terminal is closed, and that no signal ends, goes on without its output', async () => {
  const { stdout } = spawnSync('script', ['--version'], { encoding: 'utf8' })
  if ((stdout as string | null)?.includes('util-linux') !== true) return // another one has other options
  const sandbox = await createSandbox({ records: 20 })
  onTestFinished(() => sandbox.close())
  sandbox.faults.set('/external/osv/all.json', { kind: 'stall', ms: 3_000 }, { times: 1 })
  const dir = join(scratch(), 'data')
  const result = join(scratch(), 'code')
  const env = {
    PATH: process.env['PATH'],
    TERM: 'xterm',
    PATCHMIRROR_UPSTREAM_API_ROOT: sandbox.url,
    PATCHMIRROR_DATA_DIR: dir,
  }
  const command = `set -- '${process.execPath}' '${MAIN}' sync; trap : HUP; "$@"; echo $? > '${result}'`
  const terminal = spawn('script', ['-qec', command, '/dev/null'], { env, stdio: ['ignore', 'pipe', 'ignore'] })
  terminal.stdout.resume()
  onTestFinished(() => void terminal.kill('SIGKILL'))
  const asked = (): boolean => sandbox.requests.entries.some(({ path }) => path === '/external/osv/all.json')
  await expect.poll(asked, PATIENCE).toBe(true)
  terminal.kill('SIGKILL') // the terminal is gone with it
  await new Promise((resolve) => terminal.once('close', resolve))
  const codeOf = (): string => (isPresent(result) ? readFileSync(result, 'utf8').trim() : '')
  await expect.poll(codeOf, PATIENCE).toBe('0')
  const opened = openShortReads(dir)
  const ended = opened?.reads.runs.readLatestRun('osv') ?? null
  opened?.close()
  expect(ended).toMatchObject({ state: 'complete' })
})
