import { writeSync } from 'node:fs'
import { loadQuick } from '../support/limits.ts'
import { MirrorError, systemCode } from '../../src/base/errors.ts'
import type { SourceName } from '../../src/base/domain/sources.ts'
import type { RunKind } from '../../src/store/runs/runs.ts'
import { openWrites } from '../../src/store/writes.ts'
import { createRunner } from '../../src/sync/runner.ts'
import { createUpstream } from '../../src/upstream/surfaces.ts'

/**
 * A process that does one run and can be killed in the middle of it: node child.ts [kind] [full or -] [source] [line] [nth].
 * Settings come from the environment. Says each step of its progress in a line, then how it ended; stands still when it has
 * said a given line for the n-th time.
 */
const [kind = 'sync', how = '-', source = 'osv', halt = '', nth = '1'] = process.argv.slice(2)
let left = Number(nth)
const say = (line: string): void => {
  writeSync(1, `${line}\n`)
  if (line === halt && --left === 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
}

try {
  const { config } = loadQuick({ env: process.env, cwd: process.cwd(), requireUpstream: true })
  const store = openWrites(config.data.dir)
  const upstream = createUpstream({ config, version: 'test', now: Date.now })
  const runner = createRunner({
    config,
    store,
    upstream: () => upstream,
    now: Date.now,
    signal: new AbortController().signal,
    onProgress: ({ phase }) => say(phase),
  })
  say('open')
  const full = how === 'full'
  const report = await runner.run({
    source: source as SourceName,
    kind: kind as RunKind,
    trigger: 'command',
    full,
  })
  say(`ended ${report.state} ${report.code ?? ''}`)
  await upstream.close()
  store.close()
  say('closed')
} catch (error) {
  const code = error instanceof MirrorError ? error.code : `unnamed ${systemCode(error) ?? ''}`
  say(`refused ${code} ${error instanceof Error ? error.message : ''}`)
}
