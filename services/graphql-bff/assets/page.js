// GraphiQL with the operations that the bookstore publishes.
'use strict';

(async () => {
  const response = await fetch('/graphiql/operations.json');
  const operations = await response.json();

  const socket = new URL('/graphql', window.location.href);
  socket.protocol = socket.protocol === 'https:' ? 'wss:' : 'ws:';
  const fetcher = GraphiQL.createFetcher({
    url: '/graphql',
    wsClient: graphqlWs.createClient({ url: socket.href, lazy: true, retryAttempts: 2 }),
  });

  const root = ReactDOM.createRoot(document.getElementById('graphiql'));
  let shown = 0;
  const show = (operation) => {
    // GraphiQL takes a text over when it changes: the last line makes sure that it does, also after edits.
    shown += 1;
    const query = operation.text + '\n'.repeat(shown % 2);
    const variables = operation.variables + '\n'.repeat(shown % 2);
    root.render(
      React.createElement(GraphiQL, {
        fetcher,
        query,
        variables,
        defaultEditorToolsVisibility: 'variables',
        shouldPersistHeaders: false,
      }),
    );
    for (const button of bar.children) {
      button.setAttribute('aria-current', String(button.textContent === operation.name));
    }
    window.history.replaceState(null, '', '#' + operation.name);
  };

  const bar = document.getElementById('operations');
  for (const operation of operations) {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = operation.name;
    button.addEventListener('click', () => show(operation));
    bar.append(button);
  }

  const wanted = window.location.hash.slice(1) || 'BookDetail';
  show(operations.find((operation) => operation.name === wanted) || operations[0]);
})();
