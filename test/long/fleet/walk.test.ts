import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { onTestFinished, test } from 'vitest'
import { createFolderStore } from '../../../src/features/fleet/objects/folder-store.ts'
import { walkProtocol } from '../../features/fleet/generations/walk.ts'

test('mirrors publish, follow, take over, roll back and collect by a folder that they share', async () => {
  const path = mkdtempSync(join(tmpdir(), 'patchmirror-walk-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  const url = pathToFileURL(path).href
  const store = createFolderStore(url)
  const other = createFolderStore(url)
  await walkProtocol(store, other)
  store.close()
  other.close()
})
