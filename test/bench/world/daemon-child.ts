import type * as Agent from '../../../src/daemon/agent.ts'
import type * as Fixed from '../../../src/config/fixed.ts'
import type * as Load from '../../../src/config/load.ts'
import type * as Log from '../../../src/base/log.ts'
import { applyLimits } from '../../support/limits.ts'
import { built } from './built.ts'
import { peakMemory } from './peak.ts'
import type * as Table from '../../../src/features.ts'

/** The daemon as it is built, told by its parent when to run: measures itself as the system sees it. */

const { createAgent } = (await built('daemon/agent.js')) as typeof Agent
const { FEATURES } = (await built('features.js')) as typeof Table
const { loadConfig } = (await built('config/load.js')) as typeof Load
const { FIXED } = (await built('config/fixed.js')) as typeof Fixed
const { createLog } = (await built('base/log.js')) as typeof Log

const started = performance.now()
applyLimits(process.env, FIXED)
const requireUpstream = process.env['PATCHMIRROR_FLEET_ROLE'] !== 'reader'
const { config } = loadConfig({ env: process.env, cwd: process.cwd(), requireUpstream })
const agent = createAgent({
  features: FEATURES,
  config,
  version: 'bench',
  log: createLog({ level: 'error', format: 'json' }),
  onEnded: (report) => process.send?.({ report }),
})
const { url } = await agent.start()
process.send?.({
  url,
  loadedMs: started,
  startedAt: performance.timeOrigin + started,
  startMs: performance.now() - started,
})

process.on('message', (message: { run?: 'osv' | 'feeds' | 'catalog'; kind?: 'sync' | 'reconcile'; stop?: boolean }) => {
  if (message.run !== undefined) agent.requestSync(message.run, message.kind ?? 'sync')
  if (message.stop === true) void stop()
})

async function stop(): Promise<void> {
  await agent.close()
  const { user, system } = process.cpuUsage()
  process.send?.({ peak: peakMemory(), cpuMs: (user + system) / 1000 })
  process.disconnect()
}
