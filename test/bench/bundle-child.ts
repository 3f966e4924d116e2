/** A command on bundles, as it is built, in a process of its own: says how long it took and what memory it had. */
import { peakMemory } from './peak.ts'

const [verb = '', file = '', ...rest] = process.argv.slice(2)
type Verb = (first: unknown, options: object) => Promise<number>
const load = async (path: string, name: string): Promise<Verb> => {
  const built = (await import(`${process.cwd()}/dist/commands/${path}.js`)) as Record<string, Verb>
  const found = built[name]
  if (found === undefined) throw new Error(`no ${name}`)
  return found
}

const started = performance.now()
const options = { json: true, ...(rest[0] === undefined ? {} : { since: rest[0] }) }
const code =
  verb === 'export'
    ? await (
        await load('export', 'exportCommand')
      )(file, options)
    : await (
        await load('import', 'importCommand')
      )([file], options)
const ms = performance.now() - started
if (code !== 0) throw new Error(`${verb} ended with ${code}`)
process.stdout.write(`\n${JSON.stringify({ ms, peak: peakMemory() })}\n`)
