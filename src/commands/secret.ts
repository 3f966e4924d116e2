import { messageOf } from '../errors.ts'
import type { Item } from '../upstream/service-api.ts'
import { type SecretFile, createSecretFile } from './secret-file.ts'
import { SECRET_FIELDS, type ServiceOptions, printItem } from './service.ts'
import { print } from './setup.ts'

/** Options of commands that are told a secret once. */
export interface SecretOptions extends ServiceOptions {
  out?: string
}

/**
 * Calls `create` and hands over the secret in its answer: into the new file `--out`, readable by its owner only, else to
 * standard output. The file is made before anything is created, so that a name that is taken costs nothing; if the
 * secret cannot be written, it is shown after all, for it cannot be had again. Gives the exit code.
 */
export async function handOver(
  create: () => Promise<Item>,
  options: SecretOptions,
): Promise<number> {
  const { out } = options
  const file = out === undefined ? null : createSecretFile(out)
  let item: Item
  try {
    item = await create()
  } catch (error) {
    file?.discard()
    throw error
  }
  const secret = SECRET_FIELDS.map((name) => item[name]).find((one) => typeof one === 'string')
  if (secret === undefined) {
    file?.discard()
    printItem(item, options)
    warn(`it was created, but the answer holds no secret (${SECRET_FIELDS.join(', ')})`)
    return 1
  }
  return file === null ? show(item, secret, options) : keep(file, item, secret, options)
}

function keep(file: SecretFile, item: Item, secret: string, options: SecretOptions): number {
  const path = options.out ?? ''
  try {
    file.write(secret)
  } catch (error) {
    show(item, secret, options)
    file.discard() // half a secret is none
    warn(`${path} could not be written (${messageOf(error)}), so the secret is shown above`)
    return 1
  }
  printItem(item, options)
  process.stderr.write(`the secret is in ${path}, which only its owner can read\n`)
  return 0
}

/** The secret comes first: whatever fails afterwards, it has been shown. */
function show(item: Item, secret: string, options: SecretOptions): number {
  if (options.json === true) print(JSON.stringify(item, null, 2))
  else {
    print(`secret  ${secret}`)
    printItem(item, options)
  }
  warn(
    'the secret is shown this once and cannot be had again; keep it where only its user can read it',
  )
  return 0
}

function warn(text: string): void {
  process.stderr.write(`patchmirror: warning: ${text}\n`)
}
