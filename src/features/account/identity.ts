import { accountApi, fetchUsers } from './service-api.ts'
import { type ServiceCommandOptions, printItem, printItems, withSession } from './session.ts'
import { print } from '../../cli/context.ts'

/** `patchmirror whoami`: the account behind upstream's credential, and its organization. */
export async function whoamiCommand(options: ServiceCommandOptions): Promise<number> {
  const found = await withSession(options, 'remediation', async (session, { upstream }) => {
    const api = accountApi(session, upstream.maxRecordBytes)
    return { account: await api.me(), organization: await api.organization() }
  })
  if (options.json === true) {
    print(JSON.stringify(found, null, 2))
    return 0
  }
  const { organization: _, ...account } = found.account // printed in full below
  const { accounts: __, ...organization } = found.organization
  printItem(account, options)
  print('\norganization')
  printItem(organization, options)
  return 0
}

const COLUMNS = ['id', 'user_id', 'email', 'name', 'role', 'active', 'created_at', 'last_login', 'last_login_at']

/** `patchmirror users`: the users of the organization, from the identity surface. */
export async function listUsersCommand(options: ServiceCommandOptions): Promise<number> {
  const users = await withSession(options, 'identity', (session, { upstream }) =>
    fetchUsers(session, upstream.maxJsonBytes),
  )
  printItems(users, COLUMNS, options)
  return 0
}
