/** A command on bundles, as it is built, in a process of its own: says how long it took and what memory it had. */
import { built } from '../world/built.ts'
import { peakMemory } from '../world/peak.ts'

const [verb = '', file = '', ...rest] = process.argv.slice(2)
type Verb = (first: unknown, options: object) => Promise<number>
const { exportCommand } = (await built('features/bundles/cli/export.js')) as Record<'exportCommand', Verb>
const { importCommand } = (await built('features/bundles/cli/import.js')) as Record<'importCommand', Verb>

const started = performance.now()
const [since, thin] = rest
const options = { json: true, thin: thin !== undefined, ...(since === undefined ? {} : { since }) }
const code = verb === 'export' ? await exportCommand(file, options) : await importCommand([file], options)
const ms = performance.now() - started
if (code !== 0) throw new Error(`${verb} ended with ${code}`)
process.stdout.write(`\n${JSON.stringify({ ms, peak: peakMemory() })}\n`)
