/** Makes the bucket's views of a data folder, as the program is built, in a process of its own: says what it took. */
import type * as Task from '../../../src/features/scanners/views/task.ts'
import { built } from '../world/built.ts'
import { peakMemory } from '../world/peak.ts'

const { performTask } = (await built('features/scanners/views/task.js')) as typeof Task

const [dataDir = ''] = process.argv.slice(2)
const started = performance.now()
const before = process.cpuUsage()
const made = await performTask({ dataDir, kind: 'osv', vendors: ['Root'], rebuild: false })
const { user, system } = process.cpuUsage(before)
const ms = performance.now() - started
if (made === null) throw new Error('there was nothing to make')
process.stdout.write(`${JSON.stringify({ ms, cpuMs: (user + system) / 1000, peak: peakMemory(), made })}\n`)
