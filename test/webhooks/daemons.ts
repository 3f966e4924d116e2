import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { onTestFinished } from 'vitest'
import { type Agent, createAgent } from '../../src/daemon/agent.ts'
import { loadQuick } from '../support/limits.ts'
import { SECRET } from './signing.ts'
import { FEATURES } from '../../src/features.ts'

export interface Daemon {
  agent: Agent
  port: number
  dir: string
  /** Every line that was logged, as text. */
  lines: string[]
}

/** The whole daemon on a free port, with one secret and an upstream that does not answer; it ends with the test. */
export async function startDaemon(env: Record<string, string> = {}, folder?: string, offline = false): Promise<Daemon> {
  const dir = folder ?? mkdtempSync(join(tmpdir(), 'patchmirror-hooks-'))
  const { config } = loadQuick({
    env: {
      PATCHMIRROR_UPSTREAM_API_ROOT: 'http://127.0.0.1:9',
      PATCHMIRROR_DATA_DIR: dir,
      PATCHMIRROR_SERVER_LISTEN: '127.0.0.1:0',
      LIMIT_SYNC_CATCH_UP: 'false',
      PATCHMIRROR_WEBHOOKS_SECRETS: SECRET,
      ...env,
    },
    cwd: dir,
    requireUpstream: true,
  })
  const lines: string[] = []
  const log = pino({ level: 'debug' }, { write: (line: string) => void lines.push(line) })
  const agent = createAgent({ features: FEATURES, config, version: 'test', log, offline })
  onTestFinished(async () => {
    await agent.close()
    if (folder === undefined) rmSync(dir, { recursive: true, force: true })
  })
  const { port } = await agent.start()
  return { agent, port, dir, lines }
}

/** Unix seconds, for deliveries to a daemon: it goes by the real clock. */
export function seconds(): number {
  return Math.floor(Date.now() / 1000)
}
