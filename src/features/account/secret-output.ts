import { messageOf } from '../../base/errors.ts'
import type { Item, Made } from './service-answer.ts'
import { type SecretFile, createSecretFile } from '../../cli/secret-file.ts'
import { type ServiceCommandOptions, printItem } from './session.ts'
import { print, warn } from '../../cli/context.ts'

/** Options of commands that receive a secret once. */
export interface SecretOptions extends ServiceCommandOptions {
  out?: string
}

/**
 * Calls `create` and writes the secret in its answer: into the new file `--out`, readable by its owner only, else to
 * standard output. The file is created first, so that an existing name costs nothing; if the secret cannot be written, it
 * is printed after all, because the service does not return it again. Returns the exit code.
 */
export async function writeSecret(create: () => Promise<Made>, options: SecretOptions): Promise<number> {
  const { out } = options
  const file = out === undefined ? null : createSecretFile(out)
  let made: Made
  try {
    made = await create()
  } catch (error) {
    file?.discard()
    throw error
  }
  const { item, secret } = made
  if (secret === null) {
    file?.discard()
    printItem(item, options)
    warn('it was created, but no secret was found in the answer: look for it in the platform')
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
  printItem(item, options, secret)
  process.stderr.write(`the secret is in ${path}, which only its owner can read\n`)
  return 0
}

/** Prints the secret first, so that no later failure hides it. */
function show(item: Item, secret: string, options: SecretOptions): number {
  if (options.json === true) {
    const isThere = Object.values(item).includes(secret)
    print(JSON.stringify(isThere ? item : { ...item, secret }, null, 2))
  } else {
    print(`secret  ${secret}`)
    printItem(item, options, secret)
  }
  warn('the secret is shown only once and cannot be retrieved again; store it where only its user can read it')
  return 0
}
