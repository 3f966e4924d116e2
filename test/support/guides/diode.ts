import { copyFileSync, mkdirSync, readdirSync, renameSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** How often the diode looks for files, milliseconds. */
const LOOK_MS = 100

/**
 * Opens a one-way link between two machines: what is put into `send` arrives in `received` under its name, once. Names that
 * begin with a dot are not sent, and a file arrives under such a name first. Returns what closes it.
 */
export function openDiode(folder: string): () => void {
  const from = join(folder, 'send')
  const to = join(folder, 'received')
  for (const one of [from, to]) mkdirSync(one, { recursive: true })
  const sent = new Set<string>()
  const timer = setInterval(() => {
    for (const name of readdirSync(from)) {
      if (name.startsWith('.') || sent.has(name) || !statSync(join(from, name)).isFile()) continue
      sent.add(name)
      copyFileSync(join(from, name), join(to, `.${name}`))
      renameSync(join(to, `.${name}`), join(to, name))
    }
  }, LOOK_MS)
  return () => clearInterval(timer)
}
