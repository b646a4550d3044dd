// What tools/browser_smoke.py asks a page of JupyterLab; loaded before the page's own scripts.
window.smoke = {
  popups: [],
  finished: false,

  panel() {
    return window.jupyterapp?.shell.currentWidget;
  },

  // The notebook in front, or null while there is none that is ready.
  state() {
    const panel = this.panel();
    if (!panel?.context?.isReady || !panel.content?.widgets?.length) return null;
    const code = panel.content.widgets.filter((cell) => cell.model.type === 'code');
    return {
      path: panel.context.path,
      kernel: panel.sessionContext.session?.kernel?.status ?? 'none',
      cells: code.map(({ model }) => {
        const outputs = model.outputs.toJSON();
        const isPicture = ({ data }) => Object.keys(data ?? {}).some((mime) => mime.startsWith('image/'));
        return {
          empty: !model.sharedModel.getSource().trim(),
          count: model.executionCount,
          running: model.executionState === 'running',
          errors: outputs.filter(({ output_type }) => output_type === 'error')
            .map(({ ename, evalue }) => `${ename}: ${evalue}`),
          pictures: outputs.filter(isPicture).length,
        };
      }),
    };
  },

  // Set `finished` once the command Run All Cells, chosen in the menu, has ended.
  expectRunAll() {
    window.jupyterapp.commands.commandExecuted.connect((_, { id, result }) => {
      if (id === 'runmenu:run-all') result.finally(() => { this.finished = true; });
    });
  },

  // Every cell into the page, whatever is in view; returns the height that shows all of them.
  async unfold() {
    const notebook = this.panel().content;
    notebook.notebookConfig = { ...notebook.notebookConfig, windowingMode: 'none' };
    window.jupyterapp.shell.collapseLeft();
    await new Promise((done) => setTimeout(done, 500));
    for (const name of ['viewport', 'inner']) {
      for (const node of notebook.node.querySelectorAll(`.jp-WindowedPanel-${name}`)) {
        Object.assign(node.style, { transform: '', minHeight: '', height: '' });
      }
    }
    for (const cell of notebook.widgets) { // what is made only when seen
      cell.node.scrollIntoView();
      await new Promise(requestAnimationFrame);
    }
    const outer = notebook.node.querySelector('.jp-WindowedPanel-outer') ?? notebook.node;
    outer.scrollTop = 0;
    return outer.scrollHeight;
  },
};

// Pop-ups come and go: remember every one from the first moment on.
new MutationObserver(() => {
  for (const node of document.querySelectorAll('.jp-Dialog, .Toastify__toast')) {
    const text = node.innerText.replace(/\s+/g, ' ').trim();
    if (text && !window.smoke.popups.includes(text)) window.smoke.popups.push(text);
  }
}).observe(document, { childList: true, subtree: true });
