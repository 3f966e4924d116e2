import { MirrorError } from '../../base/errors.ts'
import { type ApiKeysApi, apiKeysApi } from './service-api.ts'
import { type SecretOptions, writeSecret } from './secret-output.ts'
import { type ServiceCommandOptions, named, printItem, printItems, withSession } from './session.ts'
import { print } from '../../cli/context.ts'

/** Options of `patchmirror api-keys create`. */
interface CreateApiKeyOptions extends SecretOptions {
  role?: string
  type?: string
  expires?: string
}

const LIST = 'api-keys list'
const COLUMNS = ['id', 'name', 'role', 'type', 'active', 'expires_at', 'last_used_at']

function withKeys<T>(options: ServiceCommandOptions, work: (keys: ApiKeysApi) => Promise<T>): Promise<T> {
  return withSession(options, 'remediation', (session, { upstream }) =>
    work(apiKeysApi(session, upstream.maxRecordBytes)),
  )
}

/** `patchmirror api-keys create NAME`: the key is shown, or written, once. */
export function createApiKeyCommand(name: string, options: CreateApiKeyOptions): Promise<number> {
  const { role, type, expires } = options
  const key = {
    name,
    ...(role === undefined ? {} : { role }),
    ...(type === undefined ? {} : { type }),
    ...(expires === undefined ? {} : { expires_at: instant(expires) }),
  }
  return withKeys(options, (keys) => writeSecret(() => keys.create(key), options))
}

function instant(text: string): string {
  const at = Date.parse(text)
  if (!Number.isNaN(at)) return new Date(at).toISOString().replace('.000Z', 'Z')
  throw new MirrorError('usage', `--expires ${text}: not a time such as 2030-01-31T00:00:00Z`)
}

/** `patchmirror api-keys list [ID]`. */
export async function listApiKeysCommand(id: string | undefined, options: ServiceCommandOptions): Promise<number> {
  if (id === undefined) {
    const all = await withKeys(options, (keys) => keys.list())
    printItems(all, COLUMNS, options)
    return 0
  }
  const shown = withKeys(options, (keys) => keys.show(id))
  printItem(await named(`API key ${id}`, LIST, shown), options)
  return 0
}

/** `patchmirror api-keys delete ID`. */
export async function deleteKeyCommand(id: string, options: ServiceCommandOptions): Promise<number> {
  const what = `API key ${id}`
  await named(
    what,
    LIST,
    withKeys(options, (keys) => keys.remove(id)),
  )
  print(options.json === true ? JSON.stringify({ deleted: [id] }) : `${what} is deleted`)
  return 0
}
