/** Judges the mirrored tags of a data folder, as the program is built, in a process of its own: says what that alone took. */
import type * as Findings from '../../../src/features/findings/task.ts'
import type * as Views from '../../../src/features/scanners/views/task.ts'
import { built } from '../world/built.ts'

const { performFindings } = (await built('features/findings/task.js')) as typeof Findings
const { performTask } = (await built('features/scanners/views/task.js')) as typeof Views

const [dataDir = ''] = process.argv.slice(2)
await performTask({ dataDir, kind: 'osv', vendors: ['Root'], rebuild: false })
const before = process.cpuUsage()
const report = await performFindings({ dataDir, served: null, keepDays: 30 })
const { user, system } = process.cpuUsage(before)
process.stdout.write(`${JSON.stringify({ cpuMs: (user + system) / 1000, report })}\n`)
