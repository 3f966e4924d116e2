import AdmZip from 'adm-zip'
import type { Hosted, World } from './daemons.ts'

async function bytes(url: string): Promise<Buffer> {
  const answer = await fetch(url)
  if (answer.status !== 200) throw new Error(`${url}: ${answer.status}`)
  return Buffer.from(await answer.arrayBuffer())
}

/** Every feed and record that the mirror serves is upstream's own, byte for byte; the paths and ids that differ. */
export async function feedDifferences({ url }: Hosted, { sandbox }: World): Promise<string[]> {
  const wrong: string[] = []
  for (const path of ['/external/osv/all.json', '/external/patch_feed', '/external/globals/sys_matrix']) {
    if (!(await bytes(url + path)).equals(await bytes(sandbox.url + path))) wrong.push(path)
  }
  const archive = new AdmZip(await bytes(`${url}/external/osv/all.zip`))
  const ids = sandbox.feed.ids()
  if (archive.getEntries().length !== ids.length) wrong.push('all.zip')
  for (const id of ids) {
    const expected = sandbox.feed.record(id)
    const member = archive.getEntry(`${id}.json`)?.getData()
    const served = await bytes(`${url}/external/osv/${encodeURIComponent(id)}.json`)
    if (!served.equals(expected) || member?.equals(expected) !== true) wrong.push(id)
  }
  return wrong
}
